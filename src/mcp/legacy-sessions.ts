import { randomUUID } from 'node:crypto'
import { type McpServerFactory, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { createEventStore } from './event-store.ts'
import { MAX_MESSAGE_BYTES } from './message-limit.ts'

export interface SessionOptions {
  /** Creates the server of a new session. Requests with another scope cannot use the session. */
  open(request: Request, scope: string): ReturnType<McpServerFactory>
  readonly onerror?: (error: Error) => void
}

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport
  readonly scope: string
  usedAt: number
  streams: number
}

/** For each scope, so that the read-only token cannot end the sessions of the other one. */
const MAX_SESSIONS = 256
const IDLE_MS = 30 * 60_000
/** Tells clients when to reconnect a broken stream. */
const RETRY_MS = 1000

/** Sessions, for clients of protocol revisions before 2026-07-28. */
export const createLegacySessions = ({ open, onerror }: SessionOptions) => {
  const sessions = new Map<string, Session>()

  const drop = (id: string) => {
    const session = sessions.get(id)
    sessions.delete(id)
    session?.transport.close().catch(error => onerror?.(error))
  }
  const sweep = setInterval(() => {
    const limit = performance.now() - IDLE_MS
    for (const [id, session] of sessions) if (session.streams === 0 && session.usedAt < limit) drop(id)
  }, IDLE_MS / 10)
  sweep.unref()

  const makeRoom = (scope: string) => {
    const same = [...sessions].filter(([, session]) => session.scope === scope)
    if (same.length < MAX_SESSIONS) return
    const [oldest] = same.sort(([, a], [, b]) => a.streams - b.streams || a.usedAt - b.usedAt)
    if (oldest) drop(oldest[0])
  }

  const start = async (request: Request, scope: string): Promise<Response> => {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: MAX_MESSAGE_BYTES,
      eventStore: createEventStore(),
      retryInterval: RETRY_MS,
      onsessioninitialized: id => {
        makeRoom(scope)
        sessions.set(id, { transport, scope, usedAt: performance.now(), streams: 0 })
      },
      onsessionclosed: id => void sessions.delete(id),
    })
    if (onerror) transport.onerror = onerror
    const server = await open(request, scope)
    await server.connect(transport)
    const response = await transport.handleRequest(request)
    // The request was not a valid `initialize`, so there is no session to keep.
    if (transport.sessionId === undefined) await server.close()
    return response
  }

  return {
    handle: async (request: Request, scope: string): Promise<Response> => {
      const id = request.headers.get('mcp-session-id')
      if (id === null) return start(request, scope)
      const session = sessions.get(id)
      if (session === undefined || session.scope !== scope) return unknownSession()
      session.usedAt = performance.now()
      const response = await session.transport.handleRequest(request)
      // A refused stream (a second one, say) is over with its answer, and its signal then never aborts.
      if (request.method === 'GET' && response.ok && !request.signal.aborted) {
        session.streams += 1
        request.signal.addEventListener('abort', () => {
          session.streams -= 1
          session.usedAt = performance.now()
        })
      }
      return response
    },
    close: () => {
      clearInterval(sweep)
      for (const id of [...sessions.keys()]) drop(id)
    },
  }
}

/** 404 makes the client open a new session, for example after a restart of the daemon. */
const unknownSession = (): Response =>
  Response.json(
    { jsonrpc: '2.0', error: { code: -32001, message: 'Session not found: initialize again.' }, id: null },
    { status: 404 },
  )
