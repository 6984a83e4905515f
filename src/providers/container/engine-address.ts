import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'

/** Where the engine listens, and where that was found: `DOCKER_HOST`, a docker context, a socket. */
export interface EngineAddress {
  /** `unix:///path`, `npipe:////./pipe/name`, `tcp://host:port` or `ssh://[user@]host[:port]`. */
  readonly url: string
  readonly source: string
  readonly tls?: TlsFiles
}

interface TlsFiles {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

export interface AddressSources {
  /** The setting `container.host`. */
  readonly host?: string | undefined
  readonly env: NodeJS.ProcessEnv
  /** The user's home directory. */
  readonly home: string
}

/** Finds the engine in the order of the docker CLI; undefined where none is configured and no known socket exists. */
export const findEngine = ({ host, env, home }: AddressSources): EngineAddress | undefined => {
  const named = (url: string, source: string): EngineAddress => ({ url, source, ...tlsFromEnv(env, home) })
  if (host !== undefined) return named(host, 'the setting container.host')
  if (env.DOCKER_HOST) return named(env.DOCKER_HOST, 'DOCKER_HOST')
  const context = currentContext(env, home)
  if (context !== undefined) return context
  if (env.CONTAINER_HOST) return named(env.CONTAINER_HOST, 'CONTAINER_HOST')
  const socket = usualSockets(env, home).find(path => existsSync(path))
  return socket === undefined ? undefined : { url: `unix://${socket}`, source: 'the usual places' }
}

export const usualSockets = (env: NodeJS.ProcessEnv, home: string): string[] => {
  const runtime = env.XDG_RUNTIME_DIR
  return [
    '/var/run/docker.sock',
    ...(runtime ? [join(runtime, 'docker.sock'), join(runtime, 'podman/podman.sock')] : []),
    '/run/podman/podman.sock',
    ...['.docker/run/docker.sock', '.orbstack/run/docker.sock', '.colima/default/docker.sock'].map(path =>
      join(home, path),
    ),
    join(home, '.rd/docker.sock'),
  ]
}

const dockerDirectory = (env: NodeJS.ProcessEnv, home: string): string =>
  env.DOCKER_CONFIG || join(home, '.docker')

/** The context that `docker context use` chose. The context `default` means the default socket. */
const currentContext = (env: NodeJS.ProcessEnv, home: string): EngineAddress | undefined => {
  const directory = dockerDirectory(env, home)
  const name = env.DOCKER_CONTEXT || text(readJson(join(directory, 'config.json')), 'currentContext')
  if (!name || name === 'default') return undefined
  const id = createHash('sha256').update(name).digest('hex')
  const endpoints = field(readJson(join(directory, 'contexts/meta', id, 'meta.json')), 'Endpoints')
  const url = text(field(endpoints, 'docker'), 'Host')
  if (url === undefined)
    throw new AppError('invalid', `The docker context '${name}' does not exist.`, {
      hint: 'docker context ls shows them; choose one: docker context use NAME',
    })
  return {
    url,
    source: `the docker context '${name}'`,
    ...tlsFrom(join(directory, 'contexts/tls', id, 'docker')),
  }
}

const tlsFromEnv = (env: NodeJS.ProcessEnv, home: string): { tls?: TlsFiles } =>
  env.DOCKER_TLS_VERIFY || env.DOCKER_TLS || env.DOCKER_CERT_PATH
    ? { tls: {}, ...tlsFrom(env.DOCKER_CERT_PATH || dockerDirectory(env, home)) }
    : {}

const tlsFrom = (directory: string): { tls?: TlsFiles } => {
  const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map(name => readBytes(join(directory, name)))
  return ca || cert ? { tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } } : {}
}

const readBytes = (path: string): Buffer | undefined => {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

export const readJson = (path: string): unknown => {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

export const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined

export const text = (value: unknown, name: string): string | undefined => {
  const found = field(value, name)
  return typeof found === 'string' && found !== '' ? found : undefined
}
