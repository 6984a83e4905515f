import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AppError, toAppError } from '../../jobs/errors.ts'
import type { BlobRef } from '../../jobs/job.ts'
import type { CollectedBlobs } from '../../runner/file-receiver.ts'
import type { CollectedFile, RunExit } from '../../runner/run-result.ts'
import type { LocalMachine } from './local-machine.ts'
import type { RunSpec } from './run-spec.ts'

export type CollectedResults = Pick<RunExit, 'artifacts' | 'skippedArtifacts' | 'patch'>

export interface CollectResultsOptions {
  readonly machine: LocalMachine
  readonly spec: RunSpec
  readonly startedAt: number
  readonly signal: AbortSignal
}

/**
 * Collects artifacts and the patch of a run into its directory, also while no daemon runs. A failure here does not
 * change the exit status.
 */
export const collectResults = async ({
  machine,
  spec,
  startedAt,
  signal,
}: CollectResultsOptions): Promise<CollectedResults> => {
  if (spec.artifacts.length === 0 && !spec.wantsPatch)
    return { artifacts: [], skippedArtifacts: [], patch: null }
  // Imported on demand: most jobs leave no files.
  const [{ createCollection }, { patchTasks }, { machineSource }] = await Promise.all([
    import('../../runner/collect.ts'),
    import('../../files/patch-tasks.ts'),
    import('./machine-source.ts'),
  ])
  const files = createDirectoryBlobs(spec)
  const collection = createCollection({
    blobs: files,
    jobId: spec.runId,
    manifest: {
      artifacts: spec.artifacts,
      files: spec.givenFiles.map(path => ({ path })),
      workspace: { patch: spec.wantsPatch, ...(spec.patchBase !== null && { blob: BASE }) },
    },
    keep: spec.keep,
    startedAt: () => startedAt,
    tasks: patchTasks,
  })
  let problem: string | undefined
  try {
    await collection.fetch(machineSource(machine, signal))
  } catch (error) {
    problem = toAppError(error).message
  }
  const { artifacts, skippedArtifacts, patch } = collection.result(problem)
  return {
    artifacts: artifacts.map(({ path, ...ref }) => files.collected(path, ref)),
    skippedArtifacts,
    patch: patch && files.collected('patch', patch),
  }
}

/** Stands for the tar that the workspace started from. */
const BASE = 'base'

/** Stores what is collected in the directory of the run; the daemon moves it to the blobs. */
const createDirectoryBlobs = (
  spec: RunSpec,
): CollectedBlobs & { collected(path: string, ref: BlobRef): CollectedFile } => {
  const names = new Map<string, string>()
  const nameOf = (sha256: string): string => {
    const name = names.get(sha256)
    if (name === undefined) throw new AppError('internal', `The file ${sha256} was not collected.`)
    return name
  }
  let count = 0
  return {
    put: async (source, maxBytes) => {
      const name = join('files', String(count++))
      const path = join(spec.dir, name)
      await mkdir(join(spec.dir, 'files'), { recursive: true, mode: 0o700 })
      try {
        const ref = await writeHashed(source, maxBytes, path)
        if (names.has(ref.sha256)) await rm(path)
        else names.set(ref.sha256, name)
        return ref
      } catch (error) {
        await rm(path, { force: true })
        throw error
      }
    },
    hold: async sha256 => names.has(sha256),
    read: sha256 => createReadStream(join(spec.dir, nameOf(sha256))),
    path: () => spec.patchBase ?? '',
    collected: (path, ref) => ({ path, ...ref, file: nameOf(ref.sha256) }),
  }
}

const writeHashed = async (
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  path: string,
): Promise<BlobRef> => {
  const hash = createHash('sha256')
  let size = 0
  await pipeline(
    source,
    async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        size += chunk.length
        if (size > maxBytes) throw new AppError('too_large', `The file has more than ${maxBytes} bytes.`)
        hash.update(chunk)
        yield chunk
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
  )
  return { sha256: hash.digest('hex'), size }
}
