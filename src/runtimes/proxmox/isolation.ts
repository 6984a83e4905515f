import type { Details } from './details.ts'

/** What a job was told to reach, as far as it is kept: rules on a VM need the firewall of the datacenter. */
export const networkIsolation = (
  { network, filter = 'unknown' }: Pick<Details, 'network' | 'filter'>,
  { channel, domains }: { channel: 'callback' | 'agent'; domains?: readonly string[] | undefined },
): string => {
  if (filter === 'off') return 'unfiltered network'
  const meant =
    domains !== undefined
      ? `network: only ${domains.join(', ')}`
      : network === 'full'
        ? 'filtered network'
        : channel === 'agent'
          ? 'no network'
          : 'no network but the callback'
  return filter === 'on' ? meant : `${meant} (if the firewall of the datacenter is on)`
}
