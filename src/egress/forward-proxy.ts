import { lookup as lookUp } from 'node:dns/promises'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AllowList } from './allow-list.ts'
import { refuseConnection } from './refuse-connection.ts'

/** What one job may reach, and how host names are resolved. */
export interface EgressPolicy {
  readonly allowed: AllowList
  lookup?(name: string): Promise<readonly string[]>
}

const CONNECT_MS = 30_000

/** Handles CONNECT: relays bytes to an allowed host. Resolves with the HTTP status that was sent. */
export const tunnel = async (
  policy: EgressPolicy,
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<number> => {
  client.on('error', () => {})
  const target = parseAuthority(incoming.url ?? '', 443)
  if (target === undefined) return refuseConnection(client, 400, 'The target is not host:port')
  try {
    const upstream = await open(policy, target)
    // The client has disconnected: do not leak the upstream connection.
    if (client.destroyed) {
      upstream.destroy()
      return 499
    }
    client.on('close', () => upstream.destroy())
    // A slow client still has data to read when the other side has ended.
    upstream.on('close', () => {
      if (!client.writableEnded) client.destroy()
    })
    upstream.on('error', () => client.destroy())
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    upstream.write(head)
    client.pipe(upstream)
    upstream.pipe(client)
    return 200
  } catch (error) {
    return refuseConnection(client, error instanceof Refused ? 403 : 502, (error as Error).message)
  }
}

/** Forwards a plain HTTP request to an allowed host. */
export const forward = async (
  policy: EgressPolicy,
  incoming: IncomingMessage,
  answer: ServerResponse,
): Promise<void> => {
  const fail = (status: number, text: string) => {
    if (answer.headersSent) return void answer.destroy()
    answer.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}.\n`)
  }
  const url = URL.canParse(incoming.url ?? '') ? new URL(incoming.url!) : undefined
  if (url?.protocol !== 'http:') return fail(400, 'Only http:// requests and CONNECT are forwarded')
  try {
    const socket = await open(policy, { host: url.hostname, port: Number(url.port || 80) })
    if (answer.destroyed) return void socket.destroy()
    const upstream = request({
      createConnection: () => socket,
      method: incoming.method,
      path: url.pathname + url.search,
      // Replace the Host header: the checked host is the requested host.
      headers: { ...withoutHops(incoming.headers), host: url.host, connection: 'close' },
    })
    upstream.on('response', response => {
      response.on('error', () => answer.destroy())
      try {
        answer.writeHead(response.statusCode ?? 502, withoutHops(response.headers))
        response.pipe(answer)
      } catch (error) {
        // The parser accepts a status such as 000, which cannot be sent on. Nothing else catches it here.
        response.destroy()
        fail(502, (error as Error).message)
      }
    })
    upstream.on('error', error => fail(502, error.message))
    answer.on('close', () => socket.destroy())
    incoming.pipe(upstream)
  } catch (error) {
    fail(error instanceof Refused ? 403 : 502, (error as Error).message)
  }
}

class Refused extends Error {}

interface Target {
  readonly host: string
  readonly port: number
}

/** Connects to the same address that was checked; a second lookup could return another. */
const open = async (
  { allowed, lookup = addressesOf }: EgressPolicy,
  { host, port }: Target,
): Promise<Socket> => {
  const hostVerdict = allowed.allowsHost(host, port)
  if (!hostVerdict.ok) throw new Refused(hostVerdict.reason)
  const plain = host.replace(/^\[|\]$/g, '')
  const addresses = isIP(plain) ? [plain] : await lookup(plain)
  let problem: Error = new Error(`${host} has no address`)
  for (const address of addresses) {
    const addressVerdict = allowed.allowsAddress(host, port, address)
    if (!addressVerdict.ok) {
      problem = new Refused(addressVerdict.reason)
      continue
    }
    try {
      return await dial(address, port)
    } catch (error) {
      problem = error as Error
    }
  }
  throw problem
}

const addressesOf = async (name: string): Promise<readonly string[]> =>
  (await lookUp(name, { all: true })).map(entry => entry.address)

const dial = (address: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: CONNECT_MS })
    socket.once('connect', () => {
      socket.setTimeout(0)
      socket.setNoDelay(true)
      resolve(socket)
    })
    socket.once('timeout', () => socket.destroy(new Error(`${address}:${port} did not answer`)))
    socket.once('error', reject)
  })

const parseAuthority = (text: string, defaultPort: number): Target | undefined => {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:/@\s]+)(?::(\d{1,5}))?$/.exec(text)
  if (match === null) return undefined
  const port = Number(match[2] ?? defaultPort)
  return port > 0 && port < 65_536 ? { host: match[1]!, port } : undefined
}

const HOPS = [
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade'],
]

const withoutHops = (headers: IncomingMessage['headers']): Record<string, string | string[]> => {
  const named = String(headers.connection ?? '')
    .toLowerCase()
    .split(/\s*,\s*/)
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || HOPS.includes(name) || named.includes(name) ? [] : [[name, value]],
    ),
  )
}
