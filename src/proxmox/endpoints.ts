import { AppError } from '../jobs/errors.ts'
import { type Environment, readVariable } from './env-variables.ts'

export interface Endpoint {
  /** Host name or address; IPv6 without brackets. */
  readonly host: string
  readonly port: number
  readonly origin: string
}

const DEFAULT_PORT = 8006

export const parseEndpoints = (env: Environment): Endpoint[] => {
  const hosts = readVariable(env, 'PROXMOX_HOST')
  if (hosts === undefined) {
    throw new AppError('invalid', 'PROXMOX_HOST is not set.', {
      hint: 'Set it to a node of the cluster, or to several for fail-over: PROXMOX_HOST=pve1.lan,pve2.lan',
    })
  }
  const port = parsePort(readVariable(env, 'PROXMOX_PORT'), 'PROXMOX_PORT') ?? DEFAULT_PORT
  const endpoints = hosts
    .split(',')
    .map(text => text.trim())
    .filter(text => text !== '')
    .map(text => parseEndpoint(text, port))
  if (endpoints.length === 0) throw badHost(hosts)
  return endpoints.filter((one, index) => endpoints.findIndex(other => other.origin === one.origin) === index)
}

export const parseEndpoint = (text: string, defaultPort: number): Endpoint => {
  if (text.startsWith('http://')) {
    throw new AppError('invalid', `PROXMOX_HOST is "${text}", but Proxmox VE speaks HTTPS only.`, {
      hint: `Use ${text.slice('http://'.length)}`,
    })
  }
  // Users paste the URL of the web interface or of the API.
  const bare = text.replace(/^https:\/\//, '').replace(/\/(api2(\/json)?\/?)?$/, '')
  const bracketed = /^\[([0-9a-fA-F:.%\w]+)\](?::(.*))?$/.exec(bare)
  if (bracketed) return endpoint(bracketed[1]!, bracketed[2], defaultPort, text)
  if ((bare.match(/:/g) ?? []).length > 1) return endpoint(bare, undefined, defaultPort, text)
  const [host = '', port] = bare.split(':')
  return endpoint(host, port, defaultPort, text)
}

const endpoint = (host: string, port: string | undefined, defaultPort: number, text: string): Endpoint => {
  const ipv6 = host.includes(':')
  if (!(ipv6 ? /^[0-9a-fA-F:.]+(%\w+)?$/ : /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/).test(host)) {
    throw badHost(text)
  }
  const number = parsePort(port, `the port in PROXMOX_HOST "${text}"`) ?? defaultPort
  return { host, port: number, origin: `https://${ipv6 ? `[${host}]` : host}:${number}` }
}

const parsePort = (text: string | undefined, name: string): number | undefined => {
  if (text === undefined) return undefined
  const port = Number(text)
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port
  throw new AppError('invalid', `${name} is "${text}", not a port from 1 to 65535.`, {
    hint: 'Proxmox VE listens on 8006.',
  })
}

const badHost = (text: string) =>
  new AppError('invalid', `Invalid PROXMOX_HOST "${text}".`, {
    hint: 'Examples: pve1.lan, 192.0.2.10:8006, [2001:db8::1]:8006. Separate several with commas.',
  })
