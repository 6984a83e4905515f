import type { NodeReach } from './node-reach.ts'
import type { Details } from './vm-details.ts'

export interface Circumstances {
  readonly channel: 'callback' | 'agent'
  readonly domains?: readonly string[] | undefined
  /** What the last probe on the job's node has seen, if there was one since the daemon started. */
  readonly reach?: NodeReach | undefined
}

/**
 * What a job was told to reach, as far as it is kept: rules on a VM need the firewall of the datacenter, and may not
 * keep a VM from the node it runs on.
 */
export const networkIsolation = (
  { network, filter = 'unknown' }: Pick<Details, 'network' | 'filter'>,
  { channel, domains, reach }: Circumstances,
): string => {
  if (filter === 'off') return 'unfiltered network'
  const condition = filter === 'on' ? [] : ['if the firewall of the datacenter is on']
  return `${meant(network, channel, domains)} (${[...condition, nodeSeen(reach)].join('; ')})`
}

const meant = (
  network: Details['network'],
  channel: 'callback' | 'agent',
  domains: readonly string[] | undefined,
): string => {
  if (domains !== undefined) return `network: only ${domains.join(', ')}`
  if (network === 'full') return 'filtered network'
  return channel === 'agent' ? 'no network' : 'no network but the callback'
}

const nodeSeen = (reach: NodeReach | undefined): string => {
  if (reach === undefined) return 'the node itself was not tried: deputy doctor --probe'
  if (reach.reached.length > 0) return `the node answered at ${reach.reached.join(', ')}`
  return `the node did not answer at ${reach.tried.join(', ')}`
}
