import type { BaseTree } from '../../files/base-tree.ts'
import type { ListedFile } from '../../files/file-listing.ts'
import type { PatchTasks } from '../../files/patch-tasks.ts'
import { selectArtifacts } from '../../files/select-artifacts.ts'
import { changesOf, hasCertainlyChanged, ignoreFilesOf } from '../../files/workspace-changes.ts'
import type { FileList } from '../../guest/protocol.ts'
import { AppError, toAppError } from '../../jobs/errors.ts'
import type { Artifact, BlobRef, SkippedArtifact } from '../../jobs/job.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { givenInWorkspace } from '../../jobs/paths.ts'
import { formatSize } from '../../jobs/sizes.ts'
import { redactNames } from '../../output/redact-names.ts'
import type { Blobs } from '../../ports.ts'
import { createFileReceiver, once, type Wanted } from './file-receiver.ts'

export interface CollectionOptions {
  readonly jobId: string
  readonly manifest: Manifest
  readonly blobs: Blobs
  readonly caps: {
    readonly artifactFiles: number
    readonly artifactBytes: number
    readonly patchBytes: number
  }
  readonly work: PatchTasks
  /** How much to ask for at once. */
  readonly batchBytes: number
  startedAt(): number
  /** What an earlier daemon had collected, if it had everything. */
  readonly earlier?: Collected | undefined
  /** Stores the result before the machine is told that nothing more is wanted: it does not send it again. */
  store(collected: Collected): Promise<void>
  /** A sign of life. */
  onBytes(): void
}

export interface Collected {
  readonly artifacts: readonly Artifact[]
  readonly skipped: readonly SkippedArtifact[]
  readonly patch: BlobRef | null
}

const BATCH_FILES = 2000
const IGNORE_BYTES = 16 * 1024 * 1024
const MAX_SKIPPED = 100
const BEAT_MS = 2000

/** The names of files are shown as output is. */
export const withoutSecrets = (
  { artifacts, skipped, patch }: Collected,
  redact: (text: string) => string,
): Collected => ({
  artifacts: redactNames(artifacts, redact),
  skipped: redactNames(skipped, redact),
  patch,
})

export const wantsFiles = ({ artifacts = [], workspace }: Manifest): boolean =>
  artifacts.length > 0 || workspace?.patch === true

/**
 * What a job leaves besides its output. The machine lists its workspace and is then asked for files, step by step:
 * artifacts and the rules of what is ignored, then what may have changed. What has come is not asked for again. A
 * failure here never changes how the job ended.
 */
export const createCollection = (options: CollectionOptions) => {
  const { jobId, manifest, blobs, caps, work } = options
  const wantsPatch = manifest.workspace?.patch === true
  const blob = manifest.workspace?.blob
  const basePath = blob === undefined ? null : blobs.path(blob)
  const inbox = createFileReceiver({
    blobs,
    jobId,
    memoryBytes: IGNORE_BYTES + 2 * caps.patchBytes,
    storeBytes: caps.artifactBytes,
    onBytes: options.onBytes,
  })
  let listing: FileList | undefined
  let selection: ReturnType<typeof selectArtifacts> = { wanted: [], skipped: [] }
  let plan: Plan | undefined
  let patch: { readonly ref: BlobRef | null; readonly problem?: string } | undefined
  let asked: ReadonlyMap<string, Wanted> = new Map()
  let last: Promise<unknown> = Promise.resolve()

  /** Serializes requests, even if a machine sends several at once. */
  const queue = <T>(step: () => Promise<T>): Promise<T> => {
    const result = last.then(step)
    last = result.catch(() => {})
    return result
  }

  const ask = (files: readonly ListedFile[], how: (file: ListedFile) => Omit<Wanted, 'size'>): boolean => {
    const batch = new Map<string, Wanted>()
    let bytes = 0
    for (const file of files) {
      if (inbox.isSettled(file.path)) continue
      if (batch.size > 0 && (bytes + file.size > options.batchBytes || batch.size === BATCH_FILES)) break
      batch.set(file.path, { size: file.size, ...how(file) })
      bytes += file.size
    }
    asked = batch
    return batch.size > 0
  }

  const next = async (list: FileList): Promise<readonly string[]> => {
    if (!(await isComplete(list))) return [...asked.keys()]
    await options.store(result())
    return []
  }

  /** Continues with the files received so far. */
  const isComplete = async (list: FileList): Promise<boolean> => {
    if (ask(selection.wanted, () => ({ into: 'store' }))) return false
    if (!wantsPatch || patch !== undefined) return true
    try {
      if (ask(ignoreFilesOf(list), () => ({ into: 'memory' }))) return false
      plan ??= await beating(makePlan(list))
      const { suspects, base } = plan
      if (ask(suspects, file => ({ into: 'memory', known: sameAs(file, base) }))) return false
      patch = { ref: await beating(makePatch(list, plan)) }
    } catch (error) {
      patch = { ref: null, problem: toAppError(error).message }
    }
    return true
  }

  /** The machine waits for our answer and cannot say that it lives. */
  const beating = async <T>(work: Promise<T>): Promise<T> => {
    const timer = setInterval(options.onBytes, BEAT_MS)
    return work.finally(() => clearInterval(timer))
  }

  const makePlan = async (list: FileList): Promise<Plan> => {
    const ignores: { path: string; text: string }[] = []
    for (const { path } of ignoreFilesOf(list)) {
      const content = await inbox.received.get(path)?.content?.()
      if (content !== undefined) ignores.push({ path, text: content.toString('utf8') })
    }
    const { files, skipped, base } = await work.candidates({
      listing: list,
      ignores,
      given: givenInWorkspace(manifest.files),
      basePath,
      startedAt: options.startedAt(),
    })
    // What only may have changed is as large as the user's own files; what has changed for sure is not.
    const sure = sum(files.filter(file => hasCertainlyChanged(file, base.files.get(file.path))))
    if (sure > 2 * caps.patchBytes) throw tooMuch(sure)
    if (sum(files) > caps.artifactBytes) throw tooMuch(sum(files))
    return { suspects: files, skipped, base }
  }

  const makePatch = async (list: FileList, { suspects, base }: Plan): Promise<BlobRef | null> => {
    const collected = suspects.flatMap(({ path }) => {
      const file = inbox.received.get(path)
      return file === undefined ? [] : [{ path, sha256: file.sha256, size: file.size }]
    })
    const changes = changesOf({ listing: list, base }, suspects, collected)
    if (changes.bytes > 2 * caps.patchBytes) throw tooMuch(changes.bytes)
    const contents = new Map<string, Uint8Array>()
    for (const { path, after } of changes.files) {
      if (after === null) continue
      const content = await inbox.received.get(path)?.content?.()
      if (content === undefined) throw tooMuch(changes.bytes)
      contents.set(path, content)
    }
    const text = await work.patch({ basePath, changes: changes.files, contents, maxBytes: caps.patchBytes })
    if (text === undefined) throw new AppError('too_large', `it has more than ${formatSize(caps.patchBytes)}`)
    return text.length === 0 ? null : blobs.put(once(text), text.length, jobId)
  }

  /** What has come so far, and why the rest has not. */
  const result = (): Collected => {
    if (options.earlier !== undefined) return options.earlier
    if (!wantsFiles(manifest)) return { artifacts: [], skipped: [], patch: null }
    if (listing === undefined)
      return {
        artifacts: [],
        skipped: [{ path: '.', reason: 'the machine told nothing of its files' }],
        patch: null,
      }
    const artifacts: Artifact[] = []
    const skipped: SkippedArtifact[] = [...selection.skipped]
    for (const { path } of selection.wanted) {
      const file = inbox.received.get(path)
      if (file === undefined) skipped.push({ path, reason: inbox.refused.get(path) ?? 'it did not arrive' })
      else artifacts.push({ path, sha256: file.sha256, size: file.size })
    }
    if (wantsPatch) {
      const problem = patch === undefined ? 'what has changed did not arrive' : patch.problem
      if (problem !== undefined) skipped.push({ path: '.', reason: `no patch: ${problem}` })
      else skipped.push(...patchSkips(plan, inbox.refused))
    }
    return { artifacts, skipped: skipped.slice(0, MAX_SKIPPED), patch: patch?.ref ?? null }
  }

  return {
    list: (list: FileList): Promise<readonly string[]> =>
      queue(async () => {
        if (options.earlier !== undefined) return []
        listing = list
        selection = selectArtifacts(list, manifest.artifacts ?? [], {
          files: caps.artifactFiles,
          bytes: caps.artifactBytes,
        })
        return next(list)
      }),

    receive: (tar: AsyncIterable<Uint8Array>): Promise<readonly string[]> =>
      queue(async () => {
        if (options.earlier !== undefined) return []
        // The list died with the daemon that asked for these files; the machine answers this error with a new list.
        if (listing === undefined)
          throw new AppError('conflict', 'The list of files is unknown. Send it again.')
        await inbox.receive(tar, asked).catch(error => {
          // It is not asked again: the rest stays away for this reason.
          if (toAppError(error).code === 'too_large')
            for (const path of asked.keys())
              if (!inbox.isSettled(path)) inbox.refused.set(path, toAppError(error).message)
          throw error
        })
        return next(listing)
      }),

    result,
  }
}

export type Collection = ReturnType<typeof createCollection>

interface Plan {
  readonly suspects: readonly ListedFile[]
  readonly skipped: readonly SkippedArtifact[]
  readonly base: BaseTree
}

const patchSkips = (plan: Plan | undefined, refused: ReadonlyMap<string, string>): SkippedArtifact[] => [
  ...(plan?.skipped ?? []),
  ...(plan?.suspects ?? []).flatMap(({ path }) => {
    const reason = refused.get(path)
    return reason === undefined ? [] : [{ path, reason }]
  }),
]

/** The digest that a file has if nothing about it has changed. */
const sameAs = (file: ListedFile, { files }: BaseTree): string | undefined => {
  const old = files.get(file.path)
  return hasCertainlyChanged(file, old) ? undefined : old?.sha256
}

const sum = (files: readonly ListedFile[]): number => files.reduce((total, file) => total + file.size, 0)

const tooMuch = (bytes: number): AppError =>
  new AppError('too_large', `the changed files have ${formatSize(bytes)}`)
