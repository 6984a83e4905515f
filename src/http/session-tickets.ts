import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Session } from '../ports.ts'
import { createHostCheck } from './hosts.ts'
import { serveSessionSocket } from './session-socket.ts'

/**
 * Sessions in machines that wait for their WebSocket. The request that opens a session is a call like any other, with
 * the same rights, and returns a ticket; the ticket admits one WebSocket, which in a browser cannot send a token.
 */
export interface SessionTickets {
  issue(session: Session): { readonly ticket: string; readonly expiresAt: number }
  /** Takes over a connection to `/api/sessions/TICKET`. False when the path is another one. */
  upgrade(listener: 'socket' | 'tcp', request: IncomingMessage, socket: Duplex, head: Buffer): boolean
  /** Ends all sessions. */
  close(): void
}

const WAIT_MS = 30_000
const MAX_FRAME = 1024 * 1024
const PATH = /^\/api\/sessions\/([\w-]{32})$/

export const createSessionTickets = (allowedHosts: readonly string[]): SessionTickets => {
  const checkHost = createHostCheck(allowedHosts)
  const waiting = new Map<string, { readonly session: Session; readonly timer: NodeJS.Timeout }>()
  const server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME, perMessageDeflate: false })

  const take = (ticket: string): Session | undefined => {
    const entry = waiting.get(ticket)
    waiting.delete(ticket)
    clearTimeout(entry?.timer)
    return entry?.session
  }
  const isAllowed = (listener: 'socket' | 'tcp', request: IncomingMessage): boolean => {
    if (listener === 'socket') return true
    try {
      checkHost({ get: name => [request.headers[name] ?? null].flat()[0] ?? null })
      return true
    } catch {
      return false
    }
  }

  return {
    issue: session => {
      const ticket = randomBytes(24).toString('base64url')
      const timer = setTimeout(() => take(ticket)?.stream.destroy(), WAIT_MS)
      timer.unref()
      waiting.set(ticket, { session, timer })
      return { ticket, expiresAt: Date.now() + WAIT_MS }
    },
    upgrade: (listener, request, socket, head) => {
      const ticket = PATH.exec(request.url?.split('?')[0] ?? '')?.[1]
      if (ticket === undefined) return false
      // Ignore EPIPE and ECONNRESET: the peer has disconnected.
      socket.on('error', () => {})
      const session = isAllowed(listener, request) ? take(ticket) : undefined
      if (session === undefined) {
        socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
        return true
      }
      // A handshake that fails must not leave the program running.
      const abandon = (): void => void session.stream.destroy()
      socket.once('close', abandon)
      server.handleUpgrade(request, socket, head, client => {
        socket.off('close', abandon)
        serveSessionSocket(client, session)
      })
      return true
    },
    close: () => {
      for (const ticket of [...waiting.keys()]) take(ticket)?.stream.destroy()
      for (const client of server.clients) client.close(1001)
    },
  }
}
