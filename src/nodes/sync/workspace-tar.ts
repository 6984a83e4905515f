import { pack } from 'tar-stream'
import { tarSource } from './tree-source.ts'

/**
 * Packs a workspace again without devices and paths that lead out of it. The archive is read once before anything is
 * sent, so that a damaged one fails the job at once.
 */
export const workspaceTar = async (
  read: () => AsyncIterable<Uint8Array>,
): Promise<AsyncIterable<unknown>> => {
  const source = tarSource(read)
  const entries = await source.entries()
  const tar = pack()
  source.pack(tar, new Set(entries.map(entry => entry.path))).then(
    () => tar.finalize(),
    (error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))),
  )
  return tar
}
