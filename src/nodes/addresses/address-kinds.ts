import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

export type AddressKind =
  | 'loopback'
  | 'link-local'
  | 'multicast'
  | 'unspecified'
  | 'broadcast'
  | 'container-bridge'
  | 'not-an-address'

/** The networks of this computer: container bridges, and all others. */
export interface LocalNetworks {
  bridges: BlockList
  real: BlockList
}

/** Why an address from a name service cannot belong to another machine; undefined when it can. */
export const unusableKind = (address: string, networks: LocalNetworks): AddressKind | undefined => {
  const family = isIP(address)
  if (family === 0) return 'not-an-address'
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return unusableKind(mapped, networks)
  for (const [kind, list] of KINDS) if (list.check(address, type)) return kind
  if (networks.bridges.check(address, type)) return 'container-bridge'
  // Other machines announce their bridges with the defaults of docker, podman and libvirt. Our LAN may use the same range.
  if (DEFAULT_BRIDGES.check(address, type) && !networks.real.check(address, type)) return 'container-bridge'
  return undefined
}

export const localNetworks = (interfaces = networkInterfaces()): LocalNetworks => {
  const bridges = new BlockList()
  const real = new BlockList()
  for (const [name, addresses] of Object.entries(interfaces)) {
    const list = BRIDGE_NAME.test(name) ? bridges : real
    for (const entry of addresses ?? []) {
      const prefix = Number(entry.cidr?.split('/')[1] ?? (entry.family === 'IPv4' ? 32 : 128))
      if (!entry.internal) list.addSubnet(entry.address, prefix, entry.family === 'IPv4' ? 'ipv4' : 'ipv6')
    }
  }
  return { bridges, real }
}

const BRIDGE_NAME =
  /^(?:docker|br-[0-9a-f]{12}|podman|cni|virbr|lxcbr|lxdbr|incusbr|vmnet|bridge10\d|flannel|cali)/

const subnets = (...entries: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const entry of entries) {
    const [address, prefix] = entry.split('/')
    list.addSubnet(address!, Number(prefix), address!.includes(':') ? 'ipv6' : 'ipv4')
  }
  return list
}

const KINDS: readonly (readonly [AddressKind, BlockList])[] = [
  ['unspecified', subnets('0.0.0.0/8', '::/128')],
  ['loopback', subnets('127.0.0.0/8', '::1/128')],
  ['link-local', subnets('169.254.0.0/16', 'fe80::/10')],
  ['multicast', subnets('224.0.0.0/4', 'ff00::/8')],
  ['broadcast', subnets('255.255.255.255/32')],
]

const DEFAULT_BRIDGES = subnets('172.17.0.0/16', '10.88.0.0/16', '192.168.122.0/24')
