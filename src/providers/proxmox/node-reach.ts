import { isIP } from 'node:net'
import type { Check } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { type AgentLink, createAgentLink } from './guest-agent.ts'
import type { VmRef } from './vm-ref.ts'

/** Addresses of its node that a machine without network tried to reach, and those that it reached. */
export interface NodeReach {
  readonly tried: readonly string[]
  readonly reached: readonly string[]
}

export type NodeReaches = Map<string, NodeReach>

const NAME = 'node'
const TRY_MS = 30_000

/**
 * Tries the addresses of its node from inside a machine to which everything is forbidden. The bridge that carries the
 * rules of a VM answers ARP for the node, so what a VM sends there may enter the node without meeting a rule.
 */
export const probeNode = async (proxmox: Proxmox, at: VmRef, reaches: NodeReaches): Promise<Check> => {
  const signal = AbortSignal.timeout(TRY_MS)
  const untried = (why: string): Check => ({
    name: NAME,
    status: 'warning',
    message: `whether jobs with network: none reach the node ${at.node} was not tried: ${why}`,
    fix: FIX,
  })
  try {
    const addresses = await addressesOf(proxmox, at.node, signal)
    if (addresses.length === 0) return untried('the token may not see its addresses')
    const agent = createAgentLink(proxmox, at)
    if (!(await agent.isUp(signal))) return untried(`the guest agent of VM ${at.vmid} does not answer`)
    const { port } = proxmox.settings.endpoints[0]!
    const tried = addresses.map(address => `${isIP(address) === 6 ? `[${address}]` : address}:${port}`)
    const reached = await connect(agent, tried, signal)
    reaches.set(at.node, { tried, reached })
    return told(at.node, { tried, reached })
  } catch (error) {
    return untried((error as Error).message)
  }
}

const told = (node: string, { tried, reached }: NodeReach): Check =>
  reached.length > 0
    ? {
        name: NAME,
        status: 'warning',
        message: `a job with network: none reached the node ${node} at ${reached.join(', ')}`,
        fix: FIX,
      }
    : {
        name: NAME,
        status: 'ok',
        message: `a job with network: none did not reach the node ${node} at ${tried.join(', ')}`,
      }

const FIX = `Block machines from the node with one of these:
- on each node: sysctl -w net.ipv4.conf.all.arp_ignore=1 (and the same line in /etc/sysctl.d/deputy.conf)
- a bridge for machines on which the nodes have no address: PROXMOX_BRIDGE
- rules for incoming traffic in the firewall of each node`

/** The addresses of the node's bridges, which any user of a bridge may list, and its address in the cluster. */
const addressesOf = async (proxmox: Proxmox, node: string, signal: AbortSignal): Promise<string[]> => {
  const bridges = await proxmox
    .get<{ address?: string; address6?: string }[]>(
      path`/nodes/${node}/network`,
      { type: 'any_bridge' },
      { signal },
    )
    .catch(() => [])
  const members = await proxmox
    .get<{ type?: string; name?: string; ip?: string }[]>('/cluster/status', {}, { signal })
    .catch(() => [])
  const found = [
    ...bridges.flatMap(({ address, address6 }) => [address, address6]),
    ...members.filter(one => one.type === 'node' && one.name === node).map(one => one.ip),
  ]
  return [...new Set(found.filter(address => isIP(address ?? '') !== 0))].map(String)
}

/** Prints each address that accepts a TCP connection, whatever the HTTP response is. */
const TRY = `for at; do
  t=$(curl -sk -o /dev/null --connect-timeout 3 -m 5 -w '%{time_connect}' "https://$at/")
  case $t in *[1-9]*) echo "$at" ;; esac
done`

const connect = async (
  agent: AgentLink,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<string[]> => {
  const { out } = await agent.exec(['/bin/sh', '-c', TRY, 'sh', ...addresses], signal)
  const answered = new Set(out.toString('utf8').split('\n'))
  return addresses.filter(address => answered.has(address))
}
