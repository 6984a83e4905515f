import type { BaseTree } from '../files/base-tree.ts'
import type { ListedFile, Listing } from '../files/file-listing.ts'
import type { PatchTasks } from '../files/patch-tasks.ts'
import { changesOf, hasCertainlyChanged, ignoreFilesOf } from '../files/workspace-changes.ts'
import { AppError, toAppError } from '../jobs/errors.ts'
import type { BlobRef, SkippedArtifact } from '../jobs/job.ts'
import { givenInWorkspace } from '../jobs/paths.ts'
import { formatSize } from '../jobs/sizes.ts'
import { type CollectedBlobs, type FileReceiver, once } from './file-receiver.ts'
import type { WorkspaceSource } from './workspace-source.ts'

/** The parts of a manifest that say what is collected. */
export interface CollectedParts {
  readonly artifacts?: readonly string[] | undefined
  readonly files?: readonly { readonly path: string }[] | undefined
  readonly workspace?:
    | { readonly blob?: string | undefined; readonly patch?: boolean | undefined }
    | undefined
}

export interface FetchPatchOptions {
  readonly source: WorkspaceSource
  readonly receiver: FileReceiver
  readonly listing: Listing
  readonly blobs: CollectedBlobs
  readonly jobId: string
  readonly manifest: CollectedParts
  readonly keep: { readonly artifactBytes: number; readonly patchBytes: number }
  readonly tasks: PatchTasks
  /** When the command started, in milliseconds. */
  readonly startedAt: number
}

export interface FetchedPatch {
  readonly ref: BlobRef | null
  readonly skipped: readonly SkippedArtifact[]
}

/** What a command changed in its workspace, compared with the tar that the workspace started from. */
export const fetchPatch = async (options: FetchPatchOptions): Promise<FetchedPatch> => {
  const { source, receiver, listing } = options
  await receiver.fetch(source, ignoreFilesOf(listing), () => ({ into: 'memory' }))
  let candidates: Candidates
  try {
    candidates = await findCandidates(options)
  } catch (error) {
    return noPatch(toAppError(error).message)
  }
  const { files, base } = candidates
  await receiver.fetch(source, files, file => ({ into: 'memory', known: unchangedDigest(file, base) }))
  try {
    const ref = await makePatch(options, candidates)
    return { ref, skipped: [...candidates.skipped, ...refusedFiles(files, receiver.refused)] }
  } catch (error) {
    return noPatch(toAppError(error).message)
  }
}

export const noPatch = (reason: string): FetchedPatch => ({
  ref: null,
  skipped: [{ path: '.', reason: `no patch: ${reason}` }],
})

interface Candidates {
  readonly files: readonly ListedFile[]
  readonly skipped: readonly SkippedArtifact[]
  readonly base: BaseTree
}

const findCandidates = async (options: FetchPatchOptions): Promise<Candidates> => {
  const { listing, receiver, manifest, keep, startedAt } = options
  const ignores: { path: string; text: string }[] = []
  for (const { path } of ignoreFilesOf(listing)) {
    const content = await receiver.received.get(path)?.content?.()
    if (content !== undefined) ignores.push({ path, text: content.toString('utf8') })
  }
  const given = givenInWorkspace(manifest.files)
  const candidates = await options.tasks.candidates({
    listing,
    ignores,
    given,
    basePath: basePathOf(options),
    startedAt,
  })
  const { files, base } = candidates
  // Files that may be unchanged can be as large as the whole workspace; certain changes must fit into the patch.
  const changed = sum(files.filter(file => hasCertainlyChanged(file, base.files.get(file.path))))
  if (changed > 2 * keep.patchBytes) throw tooMuch(changed)
  if (sum(files) > keep.artifactBytes) throw tooMuch(sum(files))
  return candidates
}

const makePatch = async (
  options: FetchPatchOptions,
  { files, base }: Candidates,
): Promise<BlobRef | null> => {
  const { listing, receiver, keep, blobs } = options
  const collected = files.flatMap(({ path }) => {
    const file = receiver.received.get(path)
    return file === undefined ? [] : [{ path, sha256: file.sha256, size: file.size }]
  })
  const changes = changesOf({ listing, base }, files, collected)
  if (changes.bytes > 2 * keep.patchBytes) throw tooMuch(changes.bytes)
  const contents = new Map<string, Uint8Array>()
  for (const { path, after } of changes.files) {
    if (after === null) continue
    const content = await receiver.received.get(path)?.content?.()
    if (content === undefined) throw tooMuch(changes.bytes)
    contents.set(path, content)
  }
  const maxBytes = keep.patchBytes
  const text = await options.tasks.patch({
    basePath: basePathOf(options),
    changes: changes.files,
    contents,
    maxBytes,
  })
  if (text === undefined) throw new AppError('too_large', `it has more than ${formatSize(maxBytes)}`)
  return text.length === 0 ? null : blobs.put(once(text), text.length, options.jobId)
}

const basePathOf = ({ manifest, blobs }: FetchPatchOptions): string | null => {
  const blob = manifest.workspace?.blob
  return blob === undefined ? null : blobs.path(blob)
}

/** The digest that a file has if nothing about it has changed. */
const unchangedDigest = (file: ListedFile, { files }: BaseTree): string | undefined => {
  const old = files.get(file.path)
  return hasCertainlyChanged(file, old) ? undefined : old?.sha256
}

const refusedFiles = (
  files: readonly ListedFile[],
  refused: ReadonlyMap<string, string>,
): SkippedArtifact[] =>
  files.flatMap(({ path }) => {
    const reason = refused.get(path)
    return reason === undefined ? [] : [{ path, reason }]
  })

const sum = (files: readonly ListedFile[]): number => files.reduce((total, file) => total + file.size, 0)

const tooMuch = (bytes: number): AppError =>
  new AppError('too_large', `the changed files have ${formatSize(bytes)}`)
