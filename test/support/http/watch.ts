import { type IncomingMessage, request } from 'node:http'
import { parseServerEvents, type ServerEvent } from '../../../src/client/parse-sse.ts'

export interface Watching {
  readonly response: IncomingMessage
  readonly events: AsyncGenerator<ServerEvent>
  close(): void
}

/** Opens a stream of server-sent events. Nothing is read before the first event is asked for. */
export const watch = (
  target: { socketPath: string } | { port: number; host: string },
  path: string,
  headers: Record<string, string> = {},
): Promise<Watching> =>
  new Promise((resolve, reject) => {
    const outgoing = request({ ...target, path, headers, agent: false })
    outgoing.once('error', reject)
    outgoing.once('response', response => {
      response.on('error', () => {})
      resolve({ response, events: parseServerEvents(response), close: () => outgoing.destroy() })
    })
    outgoing.end()
  })

/** All events to the end of the stream, or the first `count`. */
export const take = async (watching: Watching, count = Number.POSITIVE_INFINITY): Promise<ServerEvent[]> => {
  const taken: ServerEvent[] = []
  for await (const event of watching.events) {
    taken.push(event)
    if (taken.length >= count) break
  }
  return taken
}
