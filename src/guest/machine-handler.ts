import type { CompletePayload, ExitReport, FileList, StatusPayload } from './protocol.ts'

export type Order = 'run' | 'stop'

/** What the guest listener needs to know of one machine. Every promise resolves when the thing is durable. */
export interface MachineHandler {
  /** The order, once there is one; undefined after a while so that the machine asks again. */
  work(signal: AbortSignal): Promise<Work | undefined>
  /** The port for a job of this machine; undefined for any other job. */
  job(jobId: string): JobHandler | undefined
}

export interface Work {
  readonly jobId: string
  /** See order-format.ts. */
  readonly order: string
  /** Whether nothing but the order is needed for the start. */
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
  /** What the machine has; resolves with what it shall send. */
  files(list: FileList): Promise<readonly string[]>
  /** A tar of what it was asked for; resolves with what it shall send next. */
  receive(tar: AsyncIterable<Uint8Array>): Promise<readonly string[]>
  exit(report: ExitReport): Promise<'wait' | 'poweroff'>
  /** From runners of the older kind. */
  status(payload: StatusPayload): Promise<void>
  complete(payload: CompletePayload): Promise<void>
}
