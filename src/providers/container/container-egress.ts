import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createProxyServer, type ProxyServer } from '../../egress/proxy-server.ts'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { createConnectionChannel, WINDOW } from './channel-connections.ts'
import { RUNNER_HOME } from './container-spec.ts'
import type { EngineClient } from './engine-client.ts'
import { execInContainer } from './exec-session.ts'
import { CONNECTIONS } from './programs.ts'

export interface EgressRequest {
  readonly client: EngineClient
  readonly container: string
  readonly image: string
  readonly domains: readonly string[]
  readonly signal: AbortSignal
}

export interface ContainerEgress {
  /** Settles when the proxy listens in the container, or cannot. */
  readonly ready: Promise<void>
  /** Settles when the proxy in the container has exited: a late start would kill the proxy of the next job. */
  end(): Promise<void>
}

const PORT = 3128
export const PROXY_URL = `http://127.0.0.1:${PORT}`
/** As many as `connections.pl` accepts. */
const MOST = 64
const PAUSE_MS = 1000
const END_MS = 10_000

/**
 * The network of a job with a list of domains. Its container has none: what connects to the proxy's port there is
 * carried over an exec to the proxy, which is in this process. It is opened again when the engine was away.
 */
export const openEgress = (request: EgressRequest): ContainerEgress => {
  const over = new AbortController()
  const proxy = createProxyServer(request.domains, MOST)
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
  const { client, container, image } = request
  let failure: unknown
  const channel = createConnectionChannel({
    send: data => {
      // What was acknowledged has been read, so an honest program leaves no more than this.
      if (input.writableLength + input.readableLength > 2 * MOST * WINDOW)
        failure = new AppError('unavailable', `The container ${container} does not read.`)
      else if (input.writable) input.write(data)
    },
    onReady,
    onConnection: connection => void server.emit('connection', connection),
    most: MOST,
  })
  try {
    const { code, stderr } = await execInContainer(client, {
      container,
      argv: ['perl', '-e', CONNECTIONS, String(PORT), `${RUNNER_HOME}/connections.pid`],
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
    if (!over.aborted) throw failure ?? cannotListen(image, code, stderr)
  } catch (error) {
    throw isNotFound(error) ? noPerl(image) : error
  } finally {
    clearTimeout(timer)
    over.removeEventListener('abort', end)
    clear()
    channel.close()
    input.destroy()
  }
}

const isNotFound = (error: unknown): boolean =>
  error instanceof AppError && /executable file not found|no such file/i.test(error.message)

const cannotListen = (image: string, code: number, stderr: string): AppError =>
  code === 126 || code === 127
    ? noPerl(image)
    : new AppError('unavailable', `The proxy cannot listen in the container: ${stderr.trim() || code}.`)

const noPerl = (image: string): AppError =>
  new AppError('unsupported', `The image '${image}' has no perl, which a list of domains needs.`, {
    hint: 'Use an image based on Debian or Ubuntu, add perl to the image, or use network none or full.',
  })
