import { connect } from 'node:net'

/** The answer of `GET /api/daemon`. */
export interface DaemonInfo {
  readonly pid: number
  readonly version: string
  readonly socket: string
  /** Address of the console and the HTTP API. */
  readonly url: string | null
  readonly home?: unknown
  readonly started_at: string
  /** No job runs or waits, so the daemon can be replaced unnoticed. */
  readonly idle: boolean
  readonly jobs?: Readonly<Record<string, number>>
  /** Jobs that ended in the last 24 hours, by how they ended. */
  readonly last_day?: Readonly<Record<string, number>>
}

/** One minute in the answer of `GET /api/history`. */
export interface SampleView {
  readonly at: string
  readonly ended: Readonly<Record<string, number>>
  readonly wait_ms: { readonly p50: number; readonly p95: number } | null
  readonly duration_ms: { readonly p50: number; readonly p95: number } | null
  readonly slots: Readonly<Record<string, number>>
  readonly pending: number
}

/** Whether a process listens on the socket; costs one connect. */
export const isListening = (socket: string): Promise<boolean> =>
  new Promise(resolve => {
    const probe = connect(socket)
    const settle = (listening: boolean) => {
      probe.destroy()
      resolve(listening)
    }
    probe.once('connect', () => settle(true))
    probe.once('error', () => settle(false))
  })
