import type { CompletePayload, ExitReport, StatusPayload } from './protocol.ts'

export type Order = 'run' | 'stop'

/** Handles the requests of one machine. Every promise resolves when the change is durable. */
export interface MachineHandler {
  /** Waits for an order. Resolves with undefined after the long-poll timeout; the machine then asks again. */
  work(signal: AbortSignal): Promise<Work | undefined>
  /** The handler of a job of this machine; undefined for any other job. */
  job(jobId: string): JobHandler | undefined
}

export interface Work {
  readonly jobId: string
  /** See order-format.ts. */
  readonly order: string
  /** True if the job has no inputs to download. */
  readonly isAll: boolean
}

export interface JobHandler {
  started(): Promise<{ next: number; order: Order }>
  refused(reason: string): Promise<void>
  output(frame: {
    stream: 'stdout' | 'stderr'
    offset: number
    data: Buffer
  }): Promise<{ next: number; order: Order }>
  heartbeat(): Order
  input(index: number): AsyncIterable<Uint8Array> | undefined
  /** Takes the list of files of the machine (see `parseListing`); resolves with the paths to send. */
  files(list: Buffer): Promise<readonly string[]>
  /** Takes a tar of the requested files; resolves with the paths to send next. */
  receive(tar: AsyncIterable<Uint8Array>): Promise<readonly string[]>
  exit(report: ExitReport): Promise<'wait' | 'poweroff'>
  /** Used by older runners, through the /callback routes. */
  status(payload: StatusPayload): Promise<void>
  complete(payload: CompletePayload): Promise<void>
}
