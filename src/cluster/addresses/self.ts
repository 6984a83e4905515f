import { hostname, networkInterfaces } from 'node:os'
import type { ClusterNode } from '../inventory.ts'
import { localAddressTowards } from './local.ts'

export interface Self {
  /** The address other machines know this computer by, where that is known. */
  address: string | undefined
  /** The entry of the inventory that is this computer: one list can serve all machines. */
  id: string | undefined
}

export interface SelfOptions {
  nodes: readonly ClusterNode[]
  /** Whoever all machines of the network reach: the way there tells which of our addresses counts. */
  towards: string | undefined
  hostName?: string
  addresses?: readonly string[]
  signal: AbortSignal
}

export const findSelf = async (options: SelfOptions): Promise<Self> => {
  const { towards, hostName = hostname(), addresses = ownAddresses() } = options
  const address = towards === undefined ? undefined : await localAddressTowards(towards, options.signal)
  const own = new Set(address === undefined ? addresses : [address])
  const names = new Set(namesOf(hostName))
  const isSelf = ({ host, port, jump, fallback }: ClusterNode): boolean =>
    // Behind another port of our own address is a container or a VM.
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
