import { pack } from 'tar-stream'
import { tarSource } from './tree-source.ts'

/**
 * A workspace without what a tar must not have. It is read once before anything is sent, so that a broken one stops the
 * job.
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
