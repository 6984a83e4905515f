import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Environment } from '../proxmox/env-variables.ts'
import { bridgeClientOf, type ServerFactory } from './bridge-client.ts'
import { type StreamOptions, serveMcpStream } from './serve-stream.ts'
import { environmentOf } from './session-environment.ts'
import { STOPPING_METHOD } from './stopping-notification.ts'
import type { Selection } from './toolset.ts'
import { selectionOf } from './toolset-selection.ts'

const UPGRADE_PATH = '/mcp/stdio'
const UPGRADE_PROTOCOL = 'deputy-mcp'

export interface UpgradeOptions extends Omit<StreamOptions, 'factory' | 'bridge'> {
  readonly version: string
  /** Called for every connection. */
  openSession(selection: Selection, environment: Environment): McpSession
}

export interface McpSession {
  readonly factory: ServerFactory
  /** Called when the client has disconnected. */
  close(): void
}

/**
 * Switches a connection of the control socket to MCP. Only for the `upgrade` event of the server on the Unix socket:
 * no token is checked, because every process that can open the socket has full rights.
 */
export const createMcpUpgrade = (options: UpgradeOptions) => {
  const streams = new Set<Duplex>()
  return {
    handle: (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      // Ignore EPIPE and ECONNRESET: the peer has disconnected.
      socket.on('error', () => {})
      const wanted = request.headers.upgrade?.toLowerCase() === UPGRADE_PROTOCOL
      if (!wanted || request.url?.split('?')[0] !== UPGRADE_PATH) {
        socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
        return
      }
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${UPGRADE_PROTOCOL}\r\nx-deputy-version: ${options.version}\r\n\r\n`,
      )
      if (head.length > 0) socket.unshift(head)
      const headers = { get: (name: string) => [request.headers[name] ?? null].flat()[0] ?? null }
      streams.add(socket)
      const { updates, onerror } = options
      const session = options.openSession(selectionOf(headers), environmentOf(headers))
      void serveMcpStream(socket, {
        factory: session.factory,
        bridge: bridgeClientOf(headers),
        updates,
        ...(onerror && { onerror }),
      }).then(() => {
        streams.delete(socket)
        session.close()
      })
    },
    /** Sends the stopping notification, then closes all connections. */
    close: (): void => {
      const goodbye = `${JSON.stringify({ jsonrpc: '2.0', method: STOPPING_METHOD })}\n`
      for (const stream of streams) stream.end(goodbye, () => stream.destroy())
    },
    /** Number of connected clients. */
    count: (): number => streams.size,
  }
}
