import { AppError } from '../jobs/errors.ts'
import { createDaemonCalls } from './daemon-calls.ts'
import { createFileCalls } from './file-calls.ts'
import { createJobCalls } from './job-calls.ts'
import { type Call, createTransport, isDisconnected, type Transport } from './transport.ts'

export interface ClientOptions {
  /** Who is calling, such as `cli`. */
  readonly origin?: string
  readonly version?: string
  /** For a daemon that is reached over TCP. */
  readonly token?: string
  /** Restarts the daemon when it dies during a stream, which then continues where it was. */
  readonly revive?: (signal: AbortSignal) => Promise<void>
}

/** How the calls reach the daemon. */
export interface Connection extends Pick<ClientOptions, 'revive'> {
  readonly transport: Transport
  /** Retries when the daemon died during the call. Only for idempotent calls. */
  retry<T>(call: Call): Promise<T>
}

/** How long a call is retried while daemons die. */
const RETRY_MS = 30_000

export type Client = ReturnType<typeof connect>

/** The operations of `Deputy`, over the control socket or HTTP. Connects at the first call. */
export const connect = (home: { readonly socket: string | URL }, options: ClientOptions = {}) => {
  const { revive } = options
  const transport = createTransport(home.socket, {
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

  const connection: Connection = { transport, retry, ...(revive && { revive }) }
  return {
    ...createJobCalls(connection),
    ...createFileCalls(connection),
    ...createDaemonCalls(connection),
    close: () => transport.close(),
  }
}
