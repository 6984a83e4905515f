import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { createTokenBuckets } from '../jobs/token-buckets.ts'
import { json, text } from './http-replies.ts'

export interface GuestLimits {
  /** Sustained rate and burst of calls of one machine. Each 256 KiB of a body count as one more call. */
  readonly perSecond: number
  readonly burst: number
  /** Calls of one machine that are under way. */
  readonly inFlight: number
  /** Calls from one address that show no token of ours. */
  readonly strangersPerSecond: number
  readonly strangersBurst: number
  readonly connectionsPerAddress: number
}

/** Several times what a runner needs, and far below the capacity of the daemon. */
export const GUEST_LIMITS: GuestLimits = {
  perSecond: 200,
  burst: 400,
  inFlight: 16,
  strangersPerSecond: 50,
  strangersBurst: 200,
  connectionsPerAddress: 256,
}

const BYTES_PER_TOKEN = 256 * 1024
/** Delay of each 429 response, so that a client that ignores Retry-After gains nothing by retrying faster. */
const HOLD_MS = 1000
/** The runner parses a single digit. */
const LONGEST_SECONDS = 9

export interface RateLimiter {
  /** Returns false if the request exceeds the limit; the limiter then sends the 429 response. */
  machine(tokenHash: string, request: IncomingMessage, response: ServerResponse): boolean
  stranger(request: IncomingMessage, response: ServerResponse): boolean
  /** For each new connection. */
  connected(socket: Socket): void
}

/** Limits each machine and each address so that one of them cannot starve the others. */
export const createRateLimiter = (
  limits: GuestLimits,
  now: () => number = () => performance.now(),
): RateLimiter => {
  const machines = createTokenBuckets({ perSecond: limits.perSecond, burst: limits.burst, now })
  const strangers = createTokenBuckets({
    perSecond: limits.strangersPerSecond,
    burst: limits.strangersBurst,
    now,
  })
  const underWay = createCounter()
  const connections = createCounter()

  return {
    machine: (tokenHash, request, response) => {
      const wait = underWay.count(tokenHash) >= limits.inFlight ? 1 : machines.take(tokenHash)
      if (wait > 0) return refuse(request, response, wait)
      const { socket } = request
      const before = socket.bytesRead
      underWay.add(tokenHash, 1)
      response.once('close', () => {
        underWay.add(tokenHash, -1)
        machines.charge(tokenHash, (socket.bytesRead - before) / BYTES_PER_TOKEN)
      })
      return true
    },
    stranger: (request, response) => {
      const wait = strangers.take(networkOf(request.socket.remoteAddress))
      return wait > 0 ? refuse(request, response, wait) : true
    },
    connected: socket => {
      const network = networkOf(socket.remoteAddress)
      if (connections.count(network) >= limits.connectionsPerAddress) return void socket.destroy()
      connections.add(network, 1)
      socket.once('close', () => connections.add(network, -1))
    },
  }
}

const refuse = (request: IncomingMessage, response: ServerResponse, wait: number): false => {
  const seconds = Math.min(LONGEST_SECONDS, Math.max(1, Math.ceil(wait)))
  const timer = setTimeout(() => {
    response.setHeader('retry-after', seconds)
    if (request.url?.startsWith('/callback/')) json(response, 429, { error: 'Too many requests' })
    else text(response, 429, String(seconds))
  }, HOLD_MS)
  response.once('close', () => clearTimeout(timer))
  return false
}

const createCounter = () => {
  const counts = new Map<string, number>()
  return {
    count: (key: string): number => counts.get(key) ?? 0,
    add: (key: string, change: number): void => {
      const next = (counts.get(key) ?? 0) + change
      if (next > 0) counts.set(key, next)
      else counts.delete(key)
    },
  }
}

/** Groups IPv6 addresses by /64: a machine can use any number of addresses in its network. */
const networkOf = (address = ''): string => {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '')
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) while (groups.length + tail.split(':').length < 8) groups.push('0')
  return groups.slice(0, 4).join(':')
}
