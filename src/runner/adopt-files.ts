import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Blobs, Exit } from '../ports.ts'
import type { CollectedFile, RunExit } from './run-result.ts'

export interface AdoptOptions {
  readonly blobs: Pick<Blobs, 'hold' | 'adopt'>
  /** Where the runner has put the files. */
  readonly directory: string
  readonly jobId: string
}

const CONCURRENCY = 16

/** Stores the files that a runner on this computer has collected. Safe to repeat after a crash: the originals stay. */
export const adoptFiles = async (
  result: RunExit,
  { blobs, directory, jobId }: AdoptOptions,
): Promise<Exit> => {
  const missing = new Set<CollectedFile>()
  const adopt = async (collected: CollectedFile) => {
    const { file, sha256, size } = collected
    if (await blobs.hold(sha256, jobId)) return
    const path = join(directory, file)
    // After a power cut the file can be truncated or missing.
    if ((await stat(path).catch(() => undefined))?.size !== size) missing.add(collected)
    else await blobs.adopt(path, { sha256, size }, jobId)
  }
  // Concurrent adoptions share disk flushes.
  const files = filesOf(result)
  for (let from = 0; from < files.length; from += CONCURRENCY)
    await Promise.all(files.slice(from, from + CONCURRENCY).map(adopt))
  return withoutFiles(result, missing, 'the file was lost before it was stored')
}

/** The result, for when none of its files can be stored. */
export const adoptNothing = (result: RunExit, reason: string): Exit =>
  withoutFiles(result, new Set(filesOf(result)), reason)

const filesOf = ({ artifacts, patch }: RunExit): CollectedFile[] => [
  ...artifacts,
  ...(patch === null ? [] : [patch]),
]

const withoutFiles = (
  { outputBytes: _, artifacts, patch, ...result }: RunExit,
  missing: ReadonlySet<CollectedFile>,
  reason: string,
): Exit => ({
  ...result,
  artifacts: artifacts
    .filter(artifact => !missing.has(artifact))
    .map(({ path, sha256, size }) => ({ path, sha256, size })),
  skippedArtifacts: [...result.skippedArtifacts, ...[...missing].map(({ path }) => ({ path, reason }))],
  patch: patch === null || missing.has(patch) ? null : { sha256: patch.sha256, size: patch.size },
})
