import { BlockList, isIP } from 'node:net'
import type { State, Vm } from './state.ts'

export interface Destination {
  readonly host: string
  readonly port: number
}

/**
 * Whether the firewall lets a guest connect, by its rules of this moment: the first that matches decides, then the
 * policy. It filters nothing unless it is on in the datacenter, for the guest and for its network device. And it never
 * keeps a guest from its own node: the bridge of the firewall answers ARP for the address of the node, and what is sent
 * there enters the node without having been forwarded.
 */
export const mayConnect = (
  { clusterFirewall, nodes }: Pick<State, 'clusterFirewall' | 'nodes'>,
  { config, firewall, node }: Pick<Vm, 'config' | 'firewall' | 'node'>,
  destination: Destination,
): boolean => {
  const { options, rules } = firewall
  const filtered = [clusterFirewall.options.enable, options.enable].every(flag => Number(flag ?? 0) > 0)
  if (!filtered || !/(^|,)firewall=1(,|$)/.test(config.net0 ?? '')) return true
  const home = nodes.get(node)
  if (home?.address === destination.host && !home.arpIgnore) return true
  const rule = rules.find(one => one.type === 'out' && Number(one.enable) > 0 && matches(one, destination))
  return (rule?.action ?? options.policy_out ?? 'ACCEPT') === 'ACCEPT'
}

type Rule = Vm['firewall']['rules'][number]

/** A rule with something that is not looked at here is one for something else. */
const matches = (rule: Rule, { host, port }: Destination): boolean => {
  const { type: _, action: __, enable: ___, comment: ____, log: _____, proto, dest, dport, ...other } = rule
  return (
    Object.keys(other).length === 0 &&
    (proto === undefined || proto === 'tcp') &&
    (dest === undefined || listed(String(dest)).some(network => holds(network, host))) &&
    (dport === undefined || listed(String(dport)).some(range => spans(range, port)))
  )
}

const listed = (text: string): string[] => text.split(',').map(part => part.trim())

const holds = (network: string, host: string): boolean => {
  const [address = '', bits] = network.split('/')
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  if (isIP(address) === 0 || isIP(address) !== isIP(host)) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
  return list.check(host, family)
}

const spans = (range: string, port: number): boolean => {
  const [first, last = first] = range.split(':').map(Number)
  return port >= first! && port <= last!
}
