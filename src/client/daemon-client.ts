import { AppError } from '../jobs/errors.ts'
import type { Session, SessionRequest } from '../ports.ts'
import { createCalls } from './create-calls.ts'
import { createHttpTransport, isDisconnected } from './http-transport.ts'
import type { Call } from './transport.ts'

export interface ClientOptions {
  /** Who is calling, such as `cli`. */
  readonly origin?: string
  readonly version?: string
  /** For a daemon that is reached over TCP. */
  readonly token?: string
  /** Restarts the daemon when it dies during a stream, which then continues where it was. */
  readonly revive?: (signal: AbortSignal) => Promise<void>
}

/** How long calls and streams are retried while daemons die. */
const RETRY_MS = 30_000

export type Client = ReturnType<typeof connect>

/** The operations of `Deputy`, over the control socket or HTTP. Connects at the first call. */
export const connect = (home: { readonly socket: string | URL }, options: ClientOptions = {}) => {
  const { revive } = options
  const transport = createHttpTransport(home.socket, {
    ...(options.token && { authorization: `Bearer ${options.token}` }),
    'x-deputy-origin': options.origin ?? 'cli',
    ...(options.version && { 'x-deputy-version': options.version }),
  })

  const retry = async <T>(call: Call): Promise<T> => {
    const deadline = performance.now() + RETRY_MS
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await transport.json<T>(call)
      } catch (error) {
        if (!revive || !(error instanceof AppError) || error.code !== 'unavailable') throw error
        // Retry once when a daemon answers `unavailable`, and until the deadline when the daemon died.
        if (performance.now() > deadline || !(isFirst || isDisconnected(error))) throw error
        await revive(call.signal ?? new AbortController().signal)
      }
    }
  }

  const openSession = async (id: string, request: SessionRequest, signal?: AbortSignal): Promise<Session> => {
    const ticket = await calls.sessionTicket(id, request, signal)
    const session = await import('./open-session.ts')
    return session.openSession(transport.address, ticket, signal)
  }

  const calls = createCalls({ transport, retry, giveUpMs: RETRY_MS, ...(revive && { revive }) })
  return { ...calls, openSession, close: () => transport.close() }
}
