import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { forward, tunnel } from '../egress/forward-proxy.ts'
import type { ProxyGrant } from '../egress/proxy-grant.ts'
import { refuseConnection } from '../egress/refuse-connection.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { hashToken } from './token-hash.ts'

export interface EgressOptions {
  /** What a job may reach, by the SHA-256 of the token it was given for that, if it calls from its own machine. */
  egress?(tokenHash: string, from: string): ProxyGrant | undefined
  mayBeUnknown?(): boolean
}

/** Serves CONNECT: jobs with a list of domains use the port of the guest listener as their proxy. */
export const serveTunnel = (
  options: EgressOptions,
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<number> | number => {
  client.on('error', () => {})
  const admitted = admit(options, request, client)
  if ('grant' in admitted) return tunnel(admitted.grant, request, client, head)
  return refuseConnection(client, admitted.status, admitted.text, admitted.headers)
}

export const serveForward = (
  options: EgressOptions & { readonly rateLimiter?: RateLimiter | undefined },
  request: IncomingMessage,
  response: ServerResponse,
): void => {
  const admitted = admit(options, request, request.socket)
  if ('grant' in admitted) return void forward(admitted.grant, request, response)
  if (options.rateLimiter?.stranger(request, response) === false) return
  const { status, text, headers } = admitted
  response.writeHead(status, { connection: 'close', 'content-type': 'text/plain; charset=utf-8', ...headers })
  response.end(`${text}.\n`)
}

/** True if the URL of a request is absolute: the client uses this listener as a proxy. */
export const isForward = (url: string | undefined): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(url ?? '')

type Admitted =
  | { readonly grant: ProxyGrant }
  | { readonly status: number; readonly text: string; readonly headers?: Readonly<Record<string, string>> }

const admit = (
  { egress, mayBeUnknown }: EgressOptions,
  request: IncomingMessage,
  client: Duplex,
): Admitted => {
  const token = tokenOf(request)
  const grant =
    token === undefined ? undefined : egress?.(hashToken(token), request.socket.remoteAddress ?? '')
  if (grant === undefined) {
    // After a restart jobs are found again one by one.
    if (token !== undefined && mayBeUnknown?.()) return { status: 503, text: 'Try again later' }
    return {
      status: 407,
      text: 'This proxy is for jobs with a list of domains, by the token they were given',
      headers: { 'proxy-authenticate': 'Basic realm="deputy"' },
    }
  }
  if (!grant.admit(client)) return { status: 429, text: 'This job has too many connections open' }
  return { grant }
}

const tokenOf = ({ headers }: IncomingMessage): string | undefined => {
  const basic = /^Basic ([A-Za-z0-9+/]{1,400}={0,2})$/i.exec(headers['proxy-authorization'] ?? '')?.[1]
  return basic === undefined
    ? undefined
    : /^[^:]*:([\x21-\x7e]{16,256})$/.exec(Buffer.from(basic, 'base64').toString('latin1'))?.[1]
}
