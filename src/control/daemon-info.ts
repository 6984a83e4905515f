import { connect } from 'node:net'

/** What a daemon tells of itself: `GET /api/daemon`. */
export interface DaemonInfo {
  readonly pid: number
  readonly version: string
  readonly socket: string
  /** Where the web page and the HTTP API are. */
  readonly url: string | null
  readonly home?: unknown
  readonly started_at: string
  /** Nothing runs or waits: it may be replaced without anybody noticing. */
  readonly idle: boolean
  readonly jobs?: Readonly<Record<string, number>>
}

/** Whether anybody listens on the socket at all; costs one connect. */
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
