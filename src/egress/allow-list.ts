import { BlockList, isIP } from 'node:net'

type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: string }

export interface AllowList {
  /** Whether a job may connect to this host. */
  allowsHost(host: string, port: number): Verdict
  /** Whether a job may connect to the address that a host name resolved to. */
  allowsAddress(host: string, port: number, address: string): Verdict
}

/**
 * The hosts that a job may reach: `example.org` or `*.example.org` (subdomains only), with or without `:port`. A
 * private address is reachable only when it is listed as an address. A host name that resolves to 127.0.0.1 must not
 * give access to this computer.
 */
export const createAllowList = (
  entries: readonly string[],
  { privateAddresses = true }: { readonly privateAddresses?: boolean } = {},
): AllowList => {
  const rules = entries.map(parseEntry)
  const listed = (host: string, port: number) =>
    rules.some(rule => (rule.port === undefined || rule.port === port) && rule.matches(host))
  return {
    allowsHost: (host, port) =>
      listed(normalise(host), port)
        ? { ok: true }
        : { ok: false, reason: `${host}:${port} is not in the network list of this job` },
    allowsAddress: (host, port, address) => {
      const name = normalise(host)
      if (!isPrivate(address)) return { ok: true }
      if (!privateAddresses)
        return { ok: false, reason: `${host} is ${address}, a private address, which no job may reach` }
      if (listed(address, port) || name === 'localhost') return { ok: true }
      return {
        ok: false,
        reason: `${host} is ${address}, a private address that is not in the network list of this job`,
      }
    },
  }
}

/**
 * Everything but loopback and link-local addresses, where services trust whoever can connect: those of this computer,
 * and the metadata service of a cloud.
 */
export const anywhereElse: AllowList = {
  allowsHost: () => ({ ok: true }),
  allowsAddress: (host, _port, address) =>
    isIP(address) !== 0 && !THIS_COMPUTER.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
      ? { ok: true }
      : {
          ok: false,
          reason: `${host} is ${address}, an address of this computer, which the job cannot reach`,
        },
}

interface Rule {
  readonly port: number | undefined
  matches(host: string): boolean
}

const parseEntry = (entry: string): Rule => {
  const [, name = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
  const domain = name.replace(/\.$/, '')
  const matches = domain.startsWith('*.')
    ? (host: string) => isIP(host) === 0 && host.endsWith(domain.slice(1)) && host.length > domain.length - 1
    : (host: string) => host === domain
  return { port: port === undefined ? undefined : Number(port), matches }
}

const normalise = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')

const isPrivate = (address: string): boolean => {
  const family = isIP(address)
  if (family === 0) return true
  return PRIVATE.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

const PRIVATE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 127],
  // IPv4 behind NAT64. (BlockList checks ::ffff:a.b.c.d by the IPv4 rules above.)
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv6')

const THIS_COMPUTER = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
] as const)
  THIS_COMPUTER.addSubnet(network, bits, 'ipv4')
THIS_COMPUTER.addSubnet('::', 127, 'ipv6')
THIS_COMPUTER.addSubnet('fe80::', 10, 'ipv6')
