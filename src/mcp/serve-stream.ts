import type { Duplex } from 'node:stream'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import type { BridgeClient, ServerFactory } from './bridge-client.ts'
import { MAX_MESSAGE_BYTES } from './message-limit.ts'
import { announceUpdates, type Updates } from './updates.ts'

export interface StreamOptions {
  readonly factory: ServerFactory
  readonly bridge: BridgeClient
  readonly updates: Updates
  readonly onerror?: (error: Error) => void
}

/**
 * Serves MCP to a bridge over a byte stream, newline-delimited as on stdio. The server and the stream close together;
 * the promise resolves when the stream is closed.
 */
export const serveMcpStream = (stream: Duplex, options: StreamOptions): Promise<void> => {
  const transport = new StdioServerTransport(stream, stream, { maxBufferSize: MAX_MESSAGE_BYTES })
  const { onerror } = options
  serveStdio(
    async context => {
      const server = await options.factory(context, options.bridge)
      announceUpdates(server, context.era, options.updates)
      return server
    },
    { transport, ...(onerror && { onerror }) },
  )
  const closed = transport.onclose
  transport.onclose = () => {
    closed?.()
    stream.end()
    stream.destroy()
  }
  return new Promise(resolve => stream.once('close', () => resolve()))
}
