import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createProxyServer, type ProxyServer } from '../egress/proxy-server.ts'
import { createDeadline } from '../jobs/deadline.ts'
import { AppError } from '../jobs/errors.ts'
import { createConnectionChannel, WINDOW } from './channel-connections.ts'

export interface EgressRequest {
  /** In errors: `container deputy-1`. */
  readonly machine: string
  /** A directory of the machine for the number of the program's process. */
  readonly home: string
  readonly network: 'full' | readonly string[]
  readonly signal: AbortSignal
  /** Runs a program in the machine. Rejects for failures of the connection. */
  run(program: EgressProgram): Promise<{ readonly code: number; readonly stderr: string }>
}

interface EgressProgram {
  readonly argv: readonly string[]
  readonly input: PassThrough
  onStdout(chunk: Buffer): undefined | 'enough'
  readonly signal: AbortSignal
}

export interface MachineEgress {
  /** Settles when the proxy listens in the machine, or cannot. */
  readonly ready: Promise<void>
  /** Settles when the proxy in the machine has exited: a late start would kill the proxy of the next job. */
  end(): Promise<void>
}

/** Listens in the machine and carries its connections over stdin and stdout. */
const CONNECTIONS = readFileSync(new URL('./program/connections.pl', import.meta.url), 'utf8').replace(
  /^#.*\n/gm,
  '',
)
const PORT = 3128
export const PROXY_URL = `http://127.0.0.1:${PORT}`
/** As many as `connections.pl` accepts. */
const MOST = 64
const PAUSE_MS = 1000
const END_MS = 10_000

/**
 * The network of a job whose machine has none: what connects to the proxy's port there is carried over the stdin and
 * stdout of a program to the proxy, which is in this process. It is opened again when the connection was lost.
 */
export const openEgress = (request: EgressRequest): MachineEgress => {
  const over = new AbortController()
  const proxy = createProxyServer(request.network, MOST)
  const keepOpen = async (onReady: () => void, onFailure: (error: unknown) => void): Promise<void> => {
    while (!over.signal.aborted && !request.signal.aborted) {
      await carry(request, proxy, onReady, over.signal).catch(onFailure)
      const pause = createDeadline([over.signal, request.signal])
      await sleep(PAUSE_MS, undefined, { signal: pause.signal }).catch(() => undefined)
      pause.clear()
    }
  }
  let closed: Promise<void> | undefined
  // Only the first failure is reported: later ones are outages.
  const ready = new Promise<void>((resolve, reject) => {
    closed = keepOpen(resolve, reject)
  })
  // Nothing awaits `ready` on attach: prevent an unhandled rejection.
  ready.catch(() => undefined)
  return {
    ready,
    end: async () => {
      over.abort()
      proxy.end()
      await closed
    },
  }
}

const carry = async (
  request: EgressRequest,
  { server }: ProxyServer,
  onReady: () => void,
  over: AbortSignal,
): Promise<void> => {
  const input = new PassThrough()
  const cut = new AbortController()
  const { signal, clear } = createDeadline([request.signal, cut.signal])
  let timer: NodeJS.Timeout | undefined
  const end = (): void => {
    input.end()
    timer = setTimeout(() => cut.abort(), END_MS)
  }
  over.addEventListener('abort', end, { once: true })
  let failure: unknown
  const channel = createConnectionChannel({
    send: data => {
      // What was acknowledged has been read, so an honest program leaves no more than this.
      if (input.writableLength + input.readableLength > 2 * MOST * WINDOW)
        failure = new AppError('unavailable', `The ${request.machine} does not read.`)
      else if (input.writable) input.write(data)
    },
    onReady,
    onConnection: connection => void server.emit('connection', connection),
    most: MOST,
  })
  try {
    const { code, stderr } = await request.run({
      argv: ['perl', '-e', CONNECTIONS, String(PORT), `${request.home}/connections.pid`],
      input,
      onStdout: chunk => {
        try {
          channel.receive(chunk)
        } catch (error) {
          failure = error
        }
        return failure === undefined ? undefined : 'enough'
      },
      signal,
    })
    if (!over.aborted) throw failure ?? cannotListen(request.machine, code, stderr)
  } finally {
    clearTimeout(timer)
    over.removeEventListener('abort', end)
    clear()
    channel.close()
    input.destroy()
  }
}

const cannotListen = (machine: string, code: number, stderr: string): AppError =>
  new AppError('unavailable', `The proxy cannot listen in the ${machine}: ${stderr.trim() || code}.`)
