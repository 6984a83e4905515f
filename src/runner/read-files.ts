import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import type { Channel } from './channel.ts'

export interface ReadFilesRequest {
  channel: Channel
  workspace: string
  /** From the copy of what the workspace began with. */
  base?: boolean
  paths: readonly string[]
  signal: AbortSignal
}

export interface ReadFile {
  type: string
  size: number
  mode: number
  content: AsyncIterable<Uint8Array>
}

/** Files of a workspace, one after the other; throws when the machine does not deliver all of the tar. */
export const readFiles = async (
  { channel, workspace, base = false, paths, signal }: ReadFilesRequest,
  onFile: (path: string, file: ReadFile) => Promise<void>,
): Promise<void> => {
  if (paths.length === 0) return
  const received = new PassThrough()
  const tar = extract()
  const exchanged = channel
    .exchange([{ kind: 'read', workspace, base, argv: paths.map(path => `./${path}`) }], {
      signal,
      onAnswer: (answer, data) => void (answer.kind === 'tar' && received.write(data)),
      ready: () => (received.writableNeedDrain ? once(received, 'drain').then(() => undefined) : undefined),
    })
    .then(({ cut }) => {
      if (cut) throw cut
      received.end()
    })
    .catch(
      (error: unknown) => void received.destroy(error instanceof Error ? error : new Error(String(error))),
    )
  const fed = pipeline(received, tar)
  // The loop below reports it.
  fed.catch(() => undefined)
  for await (const item of tar) {
    const { header } = item
    await onFile(header.name.replace(/^\.\//, ''), {
      type: header.type ?? 'file',
      size: header.size ?? 0,
      mode: header.mode ?? 0o644,
      content: bytes(item),
    })
    item.resume()
  }
  await fed
  await exchanged
}

async function* bytes(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) if (chunk instanceof Uint8Array) yield chunk
}
