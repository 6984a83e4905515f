import { pack } from 'tar-stream'
import { filesTar } from '../files/pack-files.ts'
import { tarSource } from '../files/tree-source.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { Blobs } from '../ports.ts'

/** The archives that fill the workspace of a job: its own first, then the files of its manifest. */
export async function* inputArchives(
  { workspace, files = [] }: Manifest,
  blobs: Pick<Blobs, 'read'>,
): AsyncGenerator<AsyncIterable<unknown>> {
  const blob = workspace?.blob
  if (blob !== undefined) yield await workspaceTar(() => blobs.read(blob))
  if (files.length > 0) yield filesTar(files, 'root')
}

/**
 * Packs a workspace again without devices and paths that lead out of it. The archive is read once before anything is
 * sent, so that a damaged one fails the job at once.
 */
const workspaceTar = async (read: () => AsyncIterable<Uint8Array>): Promise<AsyncIterable<unknown>> => {
  const source = tarSource(read)
  const entries = await source.entries()
  const tar = pack()
  source.pack(tar, new Set(entries.map(entry => entry.path))).then(
    () => tar.finalize(),
    (error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))),
  )
  return tar
}
