import type { AppError } from '../jobs/errors.ts'
import type { Answer, Request } from './frames.ts'

/** The connection between the daemon and a runner. */
export interface Channel {
  /** Sends requests and hands over the answers. Rejects only when the signal is aborted or the daemon is at fault. */
  exchange(requests: readonly Request[], handlers: ExchangeHandlers): Promise<Exchanged>
}

export interface ExchangeHandlers {
  onAnswer(answer: Answer, data: Buffer): void
  /** From here on the runner may have received the requests; `bootId` identifies the boot of its system, if known. */
  onSent?: ((bootId: string | undefined) => void) | undefined
  /** While the promise is pending, no more answers are read. */
  ready?: (() => Promise<void> | undefined) | undefined
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

export interface Exchanged {
  /** Why the answers are not complete. */
  readonly cut: AppError | undefined
  /** The runner may have received the requests. */
  readonly sent: boolean
}

/** A channel that reports success and failure to the provider of its machine. */
export interface Connection extends Channel {
  succeeded(): void
  failed(error: AppError): void
}

/** Opens connections to the runner of one machine. */
export interface RunnerHost {
  /** For messages, as in "node n1". */
  readonly name: string
  /** How often a connection is tried before anything was sent. */
  readonly retries: number
  connect(signal: AbortSignal): Promise<Connection>
  /** A connection for a run could not be made. */
  failed(error: AppError): void
}
