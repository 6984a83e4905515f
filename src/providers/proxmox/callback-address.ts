import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { AppError } from '../../jobs/errors.ts'
import type { CallbackOptions } from './proxmox-provider-options.ts'

export interface Address {
  readonly url: string
  /** Its address, for the firewall. */
  readonly host: string
  /** `name:port:address` for machines, which may not be allowed to ask for names. */
  readonly resolve?: string
  readonly port: number
}

/**
 * The address that machines report to: the configured one, else the source address towards the cluster. That is
 * loopback only for a cluster on this computer; `checkCallback` reports when it cannot work.
 */
export const callbackAddress = async (
  callback: CallbackOptions,
  port: number,
  clusterHost: string,
): Promise<Address> => {
  if (callback.url !== undefined) {
    const url = new URL(callback.url)
    const name = url.hostname.replace(/^\[|\]$/g, '')
    const given = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
    return { url: url.href.replace(/\/+$/, ''), ...(await resolve(name, given)), port: given }
  }
  const wildcard = callback.host === '0.0.0.0' || callback.host === '::'
  const host = wildcard ? ((await towards(clusterHost)) ?? firstAddress()) : callback.host
  const scheme = callback.tls ? 'https' : 'http'
  return {
    url: `${scheme}://${bracketed(host)}:${port}`,
    ...(await resolve(host, port)),
    port,
  }
}

/** The same address without a name in it. */
export const numericUrl = ({ url, host }: Pick<Address, 'url' | 'host'>): string => {
  const numeric = new URL(url)
  numeric.hostname = bracketed(host)
  return numeric.href.replace(/\/+$/, '')
}

const bracketed = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

const resolve = async (name: string, port: number): Promise<Pick<Address, 'host' | 'resolve'>> => {
  if (isIP(name) !== 0) return { host: name }
  try {
    const host = (await lookup(name)).address
    return { host, resolve: `${name}:${port}:${bracketed(host)}` }
  } catch (cause) {
    throw new AppError('unavailable', `The callback address "${name}" has no IP address.`, {
      hint: 'Set CALLBACK_HOST to an address of this computer that machines reach.',
      cause,
    })
  }
}

/** The kernel chooses the source address of a datagram socket when it is connected; nothing is sent. */
const towards = (host: string): Promise<string | undefined> =>
  new Promise(settle => {
    const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
    const done = (address: string | undefined) => {
      socket.close()
      settle(address)
    }
    socket.once('error', () => done(undefined))
    socket.connect(9, host, () => done(socket.address().address))
  })

const firstAddress = (): string =>
  Object.values(networkInterfaces())
    .flat()
    .find(one => one !== undefined && one.family === 'IPv4' && !one.internal)?.address ?? '127.0.0.1'
