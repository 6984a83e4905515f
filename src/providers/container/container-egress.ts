import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createProxyServer, type ProxyServer } from '../../egress/proxy-server.ts'
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
  end(): void
}

const PORT = 3128
export const PROXY_URL = `http://127.0.0.1:${PORT}`
/** As many as `connections.pl` accepts. */
const MOST = 64
const PAUSE_MS = 1000

/**
 * The network of a job with a list of domains. Its container has none: what connects to the proxy's port there is
 * carried over an exec to the proxy, which is in this process. It is opened again when the engine was away.
 */
export const openEgress = (request: EgressRequest): ContainerEgress => {
  const over = new AbortController()
  const signal = AbortSignal.any([over.signal, request.signal])
  const proxy = createProxyServer(request.domains, MOST)
  const keepOpen = async (onReady: () => void, onFailure: (error: unknown) => void): Promise<void> => {
    while (!signal.aborted) {
      await carry(request, proxy, onReady, signal).catch(onFailure)
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined)
    }
  }
  // Only the first failure is reported: later ones are outages.
  const ready = new Promise<void>((resolve, reject) => void keepOpen(resolve, reject))
  // On attach nobody waits for it.
  ready.catch(() => undefined)
  return {
    ready,
    end: () => {
      over.abort(new Error('the job has ended'))
      proxy.end()
    },
  }
}

const carry = async (
  { client, container, image }: EgressRequest,
  { server }: ProxyServer,
  onReady: () => void,
  signal: AbortSignal,
): Promise<never> => {
  const input = new PassThrough()
  let failure: unknown
  const channel = createConnectionChannel({
    send: data => {
      // What was acknowledged has been read, so an honest program leaves no more than this.
      if (input.writableLength + input.readableLength > 2 * MOST * WINDOW)
        failure = new AppError('unavailable', `The container ${container} does not read.`)
      else input.write(data)
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
    throw failure ?? cannotListen(image, code, stderr)
  } catch (error) {
    throw isNotFound(error) ? noPerl(image) : error
  } finally {
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
