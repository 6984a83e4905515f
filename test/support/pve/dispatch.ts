import type { IncomingHttpHeaders } from 'node:http'
import type { createKeyedSemaphore } from '../../../src/proxmox/keyed-semaphore.ts'
import { check, isRealRoot } from './acl.ts'
import { type Auth, authenticate } from './auth.ts'
import { forbidden, PveError } from './errors.ts'
import type { Faults } from './faults.ts'
import type { GuestDriver } from './guests/driver.ts'
import { parseMultipart } from './multipart.ts'
import type { Context, Operation } from './operation.ts'
import { route } from './router.ts'
import { type Raw, verify } from './schema.ts'
import type { State } from './state.ts'

export interface Incoming {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface Backend {
  readonly state: State
  readonly faults: Faults
  readonly guests: GuestDriver
  readonly operations: readonly Operation[]
  /** The workers of pvedaemon on each node: a call that waits for something keeps one busy. */
  readonly workers: ReturnType<typeof createKeyedSemaphore>
}

export interface Outcome {
  readonly data: unknown
  /** The node that did the work, when it is not the one that was asked. */
  readonly node: string | undefined
}

/** In the order of the real one: who asks, may they, which node, are the parameters right, then the work. */
export const dispatch = async (backend: Backend, incoming: Incoming): Promise<Outcome> => {
  const { state } = backend
  const segments = incoming.path
    .split('/')
    .filter(part => part !== '')
    .map(decodeURIComponent)
  const found = route(backend.operations, incoming.method, segments)
  const world =
    found?.operation.permission !== undefined &&
    'user' in found.operation.permission &&
    found.operation.permission.user === 'world'
  const auth: Auth = world
    ? { user: '', token: undefined }
    : authenticate(state, incoming.method, incoming.headers)
  if (!found) throw new PveError(501, `Method '${incoming.method} ${incoming.path}' not implemented`)
  const { operation, inPath } = found
  const { raw, file } = readParams(operation, inPath, incoming)
  if (operation.tokenForbidden && incoming.headers.authorization !== undefined)
    throw forbidden(`URI '${incoming.path}' not available with API token, need proper ticket.\n`)
  authorise(state, auth, operation, raw)
  const node = inPath.node
  if (node !== undefined) refuseMissingNode(state, node)
  const context: Context = { ...backend, auth, params: verify(operation.params ?? {}, raw), file }
  if (!operation.onNode || node === undefined) return { data: await operation.run(context), node: undefined }
  return { data: await backend.workers(node, async () => operation.run(context)), node }
}

const authorise = (state: State, auth: Auth, { permission }: Operation, raw: Raw): void => {
  if (permission === undefined) {
    if (!isRealRoot(auth)) throw forbidden('user != root@pam')
    return
  }
  if ('user' in permission) return
  const path = permission.check[0].replace(/\{([^}]+)\}/g, (_, name: string) => String(raw[name] ?? ''))
  check(state, auth, path, permission.check[1], permission.any)
}

const refuseMissingNode = (state: State, name: string): void => {
  const node = state.nodes.get(name)
  if (!node)
    throw new PveError(
      500,
      `hostname lookup '${name}' failed - failed to get address info for: ${name}: Name or service not known`,
    )
  if (!node.up) throw new PveError(595, 'No route to host')
}

const readParams = (
  operation: Operation,
  inPath: Readonly<Record<string, string>>,
  incoming: Incoming,
): { raw: Raw; file: Buffer | undefined } => {
  const type = incoming.headers['content-type'] ?? ''
  if (type.startsWith('multipart/form-data')) {
    if (!operation.multipart) throw new PveError(501, "upload 'Content-Type' not implemented")
    const { fields, file } = parseMultipart(type, incoming.body)
    return { raw: { ...fields, ...inPath }, file }
  }
  const body = incoming.method === 'POST' || incoming.method === 'PUT' ? readBody(type, incoming.body) : {}
  return { raw: { ...collect(incoming.query), ...body, ...inPath }, file: undefined }
}

const readBody = (type: string, body: Buffer): Raw => {
  if (body.length === 0) return {}
  if (type.startsWith('application/json')) return fromJson(body)
  if (type.startsWith('application/x-www-form-urlencoded'))
    return collect(new URLSearchParams(body.toString('utf8')))
  throw new PveError(501, `upload 'Content-Type ${type}' not implemented`)
}

const collect = (params: URLSearchParams): Raw => {
  const raw: Record<string, string | string[]> = {}
  for (const [key, value] of params) {
    const before = raw[key]
    raw[key] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value]
  }
  return raw
}

const fromJson = (body: Buffer): Raw => {
  const plain = (value: unknown): string => (value === true ? '1' : value === false ? '0' : String(value))
  try {
    const parsed = JSON.parse(body.toString('utf8')) as Record<string, unknown>
    return Object.fromEntries(
      Object.entries(parsed).map(([key, value]) => [
        key,
        Array.isArray(value) ? value.map(plain) : plain(value),
      ]),
    )
  } catch (error) {
    throw new PveError(500, `malformed JSON string: ${(error as Error).message}`)
  }
}
