import { PassThrough } from 'node:stream'
import { createDeadline } from '../jobs/deadline.ts'
import type { Channel } from './channel.ts'
import { readTarFiles, type VisitFile } from './tar-files.ts'

export interface ReadFilesRequest {
  readonly channel: Channel
  readonly workspace: string
  readonly signal: AbortSignal
  readonly paths: readonly string[]
  /** The size of the tar that the machine may send. */
  readonly limit: number
}

/** Files of a workspace, one after the other; throws when the machine does not deliver all of the tar. */
export const readFiles = async (request: ReadFilesRequest, visit: VisitFile): Promise<void> => {
  const { channel, workspace, paths, limit } = request
  if (paths.length === 0) return
  const received = new PassThrough()
  const failed = new AbortController()
  const exchanging = createDeadline([request.signal, failed.signal])
  const exchanged = channel
    .exchange([{ kind: 'read', workspace, argv: paths.map(path => `./${path}`) }], {
      signal: exchanging.signal,
      onAnswer: (answer, data) => void (answer.kind === 'tar' && !received.destroyed && received.write(data)),
      ready: () => (received.writableNeedDrain && !received.destroyed ? drained(received) : undefined),
    })
    .then(({ cut }) => {
      if (cut) throw cut
      if (!received.destroyed) received.end()
    })
  exchanged.catch((error: unknown) => {
    received.destroy(error instanceof Error ? error : new Error(String(error)))
  })
  try {
    await readTarFiles(received, limit, visit)
    await exchanged
  } catch (error) {
    // The machine may still be sending, but nothing reads it any more.
    received.destroy()
    failed.abort(error)
    throw error
  } finally {
    exchanging.clear()
  }
}

const drained = (stream: PassThrough): Promise<void> =>
  new Promise(resolve => {
    const done = () => {
      stream.off('drain', done).off('close', done)
      resolve()
    }
    stream.on('drain', done).on('close', done)
  })
