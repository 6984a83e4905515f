import { createHash } from 'node:crypto'
import { lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Client } from '../client/daemon-client.ts'
import { placeBelow } from '../files/place-below.ts'
import { AppError } from '../jobs/errors.ts'
import type { Artifact } from '../jobs/job.ts'
import { didYouMean } from '../jobs/nearest.ts'
import type { Context } from './context.ts'

export interface FetchOptions {
  readonly id: string
  readonly artifacts: readonly Artifact[]
  /** Paths to download; empty means all. */
  readonly paths: readonly string[]
  readonly directory: string
  readonly force: boolean
}

/** Writes artifacts below a directory, checked against their digests. */
export const fetchArtifacts = async (
  client: Client,
  options: FetchOptions,
): Promise<{ path: string; size: number }[]> => {
  const chosen =
    options.paths.length === 0 ? options.artifacts : options.paths.map(path => find(options, path))
  const top = resolve(options.directory)
  const written = []
  for (const artifact of chosen) {
    const target = await placeBelow(top, artifact.path)
    if (!options.force && (await lstat(target).catch(() => undefined)))
      throw new AppError('conflict', `${target} already exists.`, {
        hint: 'Overwrite it with --force, or choose another directory with --output DIR.',
      })
    await download(client, options.id, artifact, target)
    written.push({ path: target, size: artifact.size })
  }
  return written
}

/** Writes one artifact to stdout. */
export const fetchArtifact = async (
  context: Context,
  client: Client,
  { id, path }: { id: string; path: string },
): Promise<void> => {
  const { bytes } = await client.openArtifact(id, path)
  for await (const chunk of bytes) await context.out.write(chunk)
}

const find = ({ artifacts, id }: FetchOptions, path: string): Artifact => {
  const found = artifacts.find(artifact => artifact.path === path)
  if (found) return found
  const guess = didYouMean(
    path,
    artifacts.map(artifact => artifact.path),
  )
  throw new AppError('not_found', `The job has no artifact '${path}'${guess || '.'}`, {
    hint: `deputy artifacts ${id}`,
  })
}

const download = async (client: Client, id: string, artifact: Artifact, target: string): Promise<void> => {
  await mkdir(dirname(target), { recursive: true })
  const temporary = `${target}.deputy-${process.pid}`
  const file = await open(temporary, 'wx')
  try {
    const hash = createHash('sha256')
    const { bytes } = await client.openArtifact(id, artifact.path)
    for await (const chunk of bytes) {
      hash.update(chunk)
      await file.write(chunk)
    }
    await file.close()
    if (hash.digest('hex') !== artifact.sha256)
      throw new AppError('internal', `The artifact '${artifact.path}' does not match its checksum.`, {
        retryable: true,
      })
    await rename(temporary, target)
  } catch (error) {
    // The first error is the one to report.
    await file.close().catch(() => {})
    await rm(temporary, { force: true })
    throw error
  }
}
