import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { Address } from './callback-address.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { retryThroughOutage } from './retry-through-outage.ts'
import type { VmRef } from './vm-ref.ts'

export interface FirewallPlan {
  readonly policyOut: 'ACCEPT' | 'DROP'
  readonly rules: readonly Rule[]
}

interface Rule {
  readonly action: 'ACCEPT' | 'DROP'
  readonly dest?: string
  readonly proto?: 'tcp' | 'udp'
  readonly dport?: string
  readonly comment: string
}

const PRIVATE = [
  ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'],
  ...['fc00::/7', 'fe80::/10'],
]

/** No inbound traffic. Outbound: always the callback; DNS and other hosts if the job may use the network. */
export const planFirewall = ({ network, callback, privateAddresses }: FirewallWish): FirewallPlan => {
  const home: Rule[] =
    callback === undefined
      ? []
      : [
          {
            action: 'ACCEPT',
            proto: 'tcp',
            dest: callback.host,
            dport: String(callback.port),
            comment: 'deputy callback',
          },
        ]
  // Block DNS too: DNS queries can carry data out.
  if (network === 'none') return { policyOut: 'DROP', rules: home }
  const names: Rule[] = (['udp', 'tcp'] as const).map(proto => ({
    action: 'ACCEPT',
    proto,
    dport: '53',
    comment: 'deputy names',
  }))
  const apart: Rule[] = privateAddresses
    ? []
    : PRIVATE.map(dest => ({ action: 'DROP', dest, comment: 'deputy no neighbours' }))
  return { policyOut: 'ACCEPT', rules: [...home, ...names, ...apart] }
}

export type Filter = 'on' | 'off' | 'unknown'

const ENFORCED_MS = 60_000

/** Returns a function that sets the firewall rules of a VM and returns whether they have effect. */
export const createProtection = (provider: ProxmoxProviderOptions, address: () => Promise<Address>) => {
  const { proxmox, channel } = provider
  const { firewall, privateAddresses } = provider.network
  const enforced = createEnforcement(provider)
  return async (at: VmRef, network: 'none' | 'full', signal: AbortSignal): Promise<Filter> => {
    if (!firewall) return 'off'
    const callback = channel === 'agent' ? undefined : await address()
    const plan = planFirewall({ network, callback, privateAddresses })
    await retryThroughOutage(proxmox, () => applyFirewall(proxmox, at, plan, signal), { signal })
    return enforced(signal)
  }
}

/** Shared by all machines, so that the cluster is not asked for each. */
const createEnforcement = ({ proxmox, log }: Pick<ProxmoxProviderOptions, 'proxmox' | 'log'>) => {
  let known: { readonly at: number; readonly filter: Filter } | undefined
  return async (signal: AbortSignal): Promise<Filter> => {
    const now = proxmox.clock.now()
    if (known && now - known.at < ENFORCED_MS) return known.filter
    const filter = await datacenterFirewall(proxmox, signal).catch((): Filter => 'unknown')
    if (filter === 'off' && known?.filter !== 'off')
      log.warn({}, 'the firewall of the datacenter is off: machines reach whatever their network reaches')
    known = { at: now, filter }
    return filter
  }
}

/** Whether firewall rules on a VM have effect; unknown without the privilege to audit the cluster. */
export const datacenterFirewall = async (proxmox: Proxmox, signal?: AbortSignal): Promise<Filter> => {
  try {
    const options = await proxmox.get<{ enable?: unknown }>(
      '/cluster/firewall/options',
      {},
      signal ? { signal } : {},
    )
    return Number(options.enable ?? 0) > 0 ? 'on' : 'off'
  } catch (error) {
    if (proxmoxDetails(error)?.kind === 'permission') return 'unknown'
    throw error
  }
}

export interface FirewallWish {
  readonly network: 'none' | 'full'
  /** Absent when machines report through the guest agent. */
  readonly callback?: { readonly host: string; readonly port: number } | undefined
  readonly privateAddresses: boolean
}

/** Replaces the rules of a VM. Sets the policy to deny first, so that no intermediate state is more open. */
const applyFirewall = async (
  proxmox: Proxmox,
  { node, vmid }: VmRef,
  plan: FirewallPlan,
  signal?: AbortSignal,
): Promise<void> => {
  const at = path`/nodes/${node}/qemu/${vmid}/firewall`
  const call = signal ? { signal } : {}
  await proxmox.put(
    `${at}/options`,
    { enable: true, policy_in: 'DROP', policy_out: 'DROP', dhcp: true, ndp: true, macfilter: true },
    call,
  )
  const before = await proxmox.get<{ pos: number }[]>(`${at}/rules`, {}, call)
  // Delete from the last to the first: a deletion renumbers the following rules.
  for (const { pos } of [...before].sort((a, b) => Number(b.pos) - Number(a.pos)))
    await proxmox.delete(`${at}/rules/${pos}`, {}, call)
  // A new rule is inserted at the top, and has no effect without `enable`.
  for (const rule of [...plan.rules].reverse())
    await proxmox.post(`${at}/rules`, { type: 'out', enable: 1, ...rule }, call)
  if (plan.policyOut !== 'DROP') await proxmox.put(`${at}/options`, { policy_out: plan.policyOut }, call)
}
