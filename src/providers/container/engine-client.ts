import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type EngineAddress, text } from './engine-address.ts'
import { openSocket } from './engine-socket.ts'

interface EngineRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** JSON, or a tar in a buffer. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** For one that answers at once; default a minute. 0: no limit. */
  readonly timeoutMs?: number
}

/** The Engine API of Docker and Podman. */
export interface EngineClient {
  readonly address: EngineAddress
  /** The JSON answer; undefined where there is none. */
  json(request: EngineRequest): Promise<unknown>
  /** A stream of JSON lines, as a pull sends them. */
  lines(request: EngineRequest, onLine: (value: unknown) => void): Promise<void>
  /** A connection that the engine has handed over to a process of a container. */
  hijack(request: EngineRequest): Promise<{ socket: Duplex; head: Buffer }>
}

/** Docker 20.10 has 1.41, Podman 4 says the same. */
const OLDEST = 40
const NEWEST = 51
const ANSWER_MS = 60_000

export const createEngineClient = (address: EngineAddress): EngineClient => {
  let version: Promise<string> | undefined

  /** The newest version that both sides know. An engine that was replaced meanwhile is asked again. */
  const negotiate = (signal: AbortSignal): Promise<string> => {
    version ??= ping(address, signal).catch(error => {
      version = undefined
      throw error
    })
    return version
  }

  const send = async (request: EngineRequest, upgrade: boolean) => {
    const deadline = createDeadline(
      [request.signal],
      request.timeoutMs === 0 ? undefined : (request.timeoutMs ?? ANSWER_MS),
    )
    try {
      const prefix = await negotiate(deadline.signal)
      const response = await exchange(
        address,
        { ...request, path: `${prefix}${request.path}` },
        deadline.signal,
        upgrade,
      )
      const { statusCode = 0 } = response.message
      if (statusCode >= 400) throw await refusal(response.message, request.path)
      return response
    } catch (error) {
      if (deadline.expired)
        throw new AppError('timeout', `The container engine did not answer ${request.path} in time.`)
      throw error
    } finally {
      deadline.clear()
    }
  }

  return {
    address,
    json: async request => {
      const { message } = await send(request, false)
      const body = await readAll(message, request.signal)
      return body.length === 0 ? undefined : JSON.parse(body.toString('utf8'))
    },
    lines: async (request, onLine) => {
      const { message } = await send(request, false)
      const onAbort = (): void => void message.destroy(new Error('aborted'))
      request.signal.addEventListener('abort', onAbort, { once: true })
      let held = ''
      try {
        for await (const chunk of message.setEncoding('utf8')) {
          const parts = (held + chunk).split('\n')
          held = parts.pop() ?? ''
          for (const part of parts) if (part.trim() !== '') onLine(JSON.parse(part))
        }
        if (held.trim() !== '') onLine(JSON.parse(held))
      } catch (error) {
        request.signal.throwIfAborted()
        throw error instanceof AppError ? error : unreachable(address, error)
      } finally {
        request.signal.removeEventListener('abort', onAbort)
      }
    },
    hijack: async request => {
      const { message, socket, head } = await send(request, true)
      if (socket === undefined) {
        message.destroy()
        throw new AppError('unavailable', `The container engine did not open a stream for ${request.path}.`)
      }
      return { socket, head }
    },
  }
}

/** The JSON answer; undefined when the engine has no such thing. */
export const inspectIfPresent = async (
  client: EngineClient,
  path: string,
  signal: AbortSignal,
): Promise<unknown> => {
  try {
    return await client.json({ path, signal })
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined
    throw error
  }
}

const ping = async (address: EngineAddress, signal: AbortSignal): Promise<string> => {
  const { message } = await exchange(address, { path: '/_ping', signal }, signal, false)
  message.resume()
  const [major, minor = 0] = String(message.headers['api-version'] ?? '')
    .split('.')
    .map(Number)
  if (message.statusCode !== 200 || major !== 1)
    throw new AppError('unavailable', `The server at ${address.url} is not a container engine.`, {
      hint: 'Point DOCKER_HOST at the socket of Docker or Podman.',
    })
  if (minor < OLDEST)
    throw new AppError(
      'unsupported',
      `The engine at ${address.url} has API 1.${minor}; 1.${OLDEST} is needed.`,
      {
        hint: 'Upgrade to Docker 20.10 or Podman 4.',
      },
    )
  return `/v1.${Math.min(minor, NEWEST)}`
}

interface Exchanged {
  message: IncomingMessage
  socket?: Duplex
  head: Buffer
}

const exchange = (
  address: EngineAddress,
  { method = 'GET', path, query, body, headers }: EngineRequest,
  signal: AbortSignal,
  upgrade: boolean,
): Promise<Exchanged> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const isTar = Buffer.isBuffer(body)
    const payload = body === undefined || isTar ? body : JSON.stringify(body)
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`
    const options: RequestOptions = {
      method,
      path: `${path}${search}`,
      headers: {
        host: 'docker',
        ...headers,
        ...(payload !== undefined && {
          'content-type': isTar ? 'application/x-tar' : 'application/json',
          'content-length': String(Buffer.byteLength(payload)),
        }),
        ...(upgrade && { connection: 'Upgrade', upgrade: 'tcp' }),
      },
      // http only uses the stream part of it.
      createConnection: () => openSocket(address) as Socket,
    }
    let request: ReturnType<typeof httpRequest>
    try {
      request = httpRequest(options)
    } catch (error) {
      return reject(error)
    }
    const onAbort = (): void => {
      request.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const settle = (answer: Exchanged): void => {
      signal.removeEventListener('abort', onAbort)
      resolve(answer)
    }
    request.on('error', error => {
      signal.removeEventListener('abort', onAbort)
      reject(unreachable(address, error))
    })
    request.on('response', message => settle({ message, head: Buffer.alloc(0) }))
    request.on('upgrade', (message, socket, head) => settle({ message, socket, head }))
    request.end(payload)
  })

const readAll = async (message: IncomingMessage, signal?: AbortSignal): Promise<Buffer> => {
  const chunks: Buffer[] = []
  const onAbort = (): void => void message.destroy(new Error('aborted'))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    for await (const chunk of message) chunks.push(chunk as Buffer)
    return Buffer.concat(chunks)
  } catch (error) {
    signal?.throwIfAborted()
    throw new AppError('unavailable', 'The container engine broke off its answer.', { cause: error })
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

const refusal = async (message: IncomingMessage, path: string): Promise<AppError> => {
  const body = (await readAll(message)).toString('utf8')
  const said = messageOf(body) || `status ${message.statusCode}`
  const code = CODES[message.statusCode ?? 0] ?? (/no space left/i.test(said) ? 'too_large' : 'unavailable')
  return new AppError(
    code,
    `The container engine refused ${path.split('/').slice(0, 2).join('/')}: ${said}.`,
    {
      ...(code === 'too_large' && { hint: 'The disk of the engine is full: docker system df' }),
      details: { status: message.statusCode, said },
    },
  )
}

const CODES: Readonly<Record<number, 'invalid' | 'denied' | 'not_found' | 'conflict'>> = {
  400: 'invalid',
  401: 'denied',
  403: 'denied',
  404: 'not_found',
  409: 'conflict',
}

const messageOf = (body: string): string => {
  try {
    return (text(JSON.parse(body), 'message') ?? '').trim().replace(/\.$/, '')
  } catch {
    return body.trim().slice(0, 300)
  }
}

const unreachable = (address: EngineAddress, cause: unknown): AppError => {
  const { code, message } = cause as NodeJS.ErrnoException
  const denied = code === 'EACCES' || code === 'EPERM'
  return new AppError('unavailable', `The container engine at ${address.url} does not answer: ${message}.`, {
    hint: denied
      ? 'Add your user to the group docker, then log in again: sudo usermod -aG docker $USER'
      : address.url.startsWith('ssh:')
        ? `Try it by hand: docker -H ${address.url} version`
        : 'Start it: systemctl start docker (or podman.socket), or open Docker Desktop.',
    cause,
  })
}
