import { hostname, networkInterfaces } from 'node:os'
import type { ClusterNode } from '../inventory.ts'
import { localAddressTowards } from './local-address.ts'

export interface Self {
  /** The address of this computer in the network of the nodes; undefined without a gateway. */
  address: string | undefined
  /** The node of the inventory that is this computer: several computers can share one inventory. */
  id: string | undefined
}

export interface SelfOptions {
  nodes: readonly ClusterNode[]
  /** An address that all nodes can reach, such as the gateway. It selects one of our addresses. */
  towards: string | undefined
  hostName?: string
  addresses?: readonly string[]
  signal: AbortSignal
}

/** Finds this computer in the inventory, by host name or address. */
export const findSelf = async (options: SelfOptions): Promise<Self> => {
  const { towards, hostName = hostname(), addresses = ownAddresses() } = options
  const address = towards === undefined ? undefined : await localAddressTowards(towards, options.signal)
  const own = new Set(address === undefined ? addresses : [address])
  const names = new Set(namesOf(hostName))
  const isSelf = ({ host, port, jump, fallback }: ClusterNode): boolean =>
    // Another port on our own address leads to a container or a VM.
    jump === undefined &&
    (port === undefined || port === 22) &&
    (own.has(host) || names.has(host.toLowerCase()) || (fallback !== undefined && own.has(fallback)))
  return { address, id: options.nodes.find(isSelf)?.id }
}

const namesOf = (hostName: string): string[] => {
  const full = hostName.toLowerCase()
  const short = full.split('.')[0]!
  return short === 'localhost' ? [] : [full, short, `${short}.local`]
}

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap(entries =>
    (entries ?? []).filter(entry => !entry.internal).map(entry => entry.address),
  )
