import { describe, expect, it } from 'vitest'
import { planFirewall } from '../../../src/providers/proxmox/firewall.ts'
import { mayConnect } from '../../support/pve/filter.ts'

const NET = 'virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1'
const NODE = {
  ...{ name: 'pve1', up: true, maxcpu: 1, maxmem: 1, cpu: 0, mem: 0, hosts: '' },
  address: '10.0.2.1',
}
const DAEMON = { host: '10.0.2.100', port: 8765 }

interface Options {
  readonly datacenter?: number
  readonly guest?: number
  readonly net0?: string
  readonly policy?: string
  readonly arpIgnore?: boolean
}

const filter = (
  rules: object[],
  { datacenter = 1, guest = 1, net0 = NET, policy = 'DROP', arpIgnore = false }: Options = {},
) => {
  const nodes = new Map([['pve1', { ...NODE, arpIgnore }]])
  const vm = {
    node: 'pve1',
    config: { net0 },
    firewall: {
      options: { enable: guest, policy_out: policy },
      rules: rules.map(rule => ({ type: 'out', enable: 1, ...rule })),
    },
  }
  return (host: string, port: number) =>
    mayConnect({ clusterFirewall: { options: { enable: datacenter }, rules: [] }, nodes }, vm, { host, port })
}

describe('the firewall of an emulated machine', () => {
  it('does not keep it from its own node, unless that ignores ARP for addresses of other bridges', () => {
    expect(filter([])('10.0.2.1', 8006)).toBe(true)
    expect(filter([])('10.0.2.2', 8006)).toBe(false)
    expect(filter([], { arpIgnore: true })('10.0.2.1', 8006)).toBe(false)
  })

  it('lets a machine that has the rules of a job reach what the job may', () => {
    const plan = (network: 'none' | 'full', privateAddresses = false) => {
      const { policyOut, rules } = planFirewall({ network, callback: DAEMON, privateAddresses })
      const may = filter([...rules], { policy: policyOut })
      return [
        may(DAEMON.host, DAEMON.port),
        may(DAEMON.host, 22),
        may('10.0.2.101', 80),
        may('198.51.100.7', 443),
        may('fd00::1', 443),
      ]
    }
    expect(plan('none')).toEqual([true, false, false, false, false])
    expect(plan('full')).toEqual([true, false, false, true, false])
    expect(plan('full', true)).toEqual([true, true, true, true, true])
  })

  it('obeys the first rule that matches and is on', () => {
    const may = filter([
      { action: 'ACCEPT', dest: '10.0.0.1', enable: 0 },
      { action: 'DROP', dest: '10.0.0.0/8', dport: '1:79' },
      { action: 'ACCEPT', dest: '192.0.2.1,10.0.0.1', proto: 'tcp', dport: '22,80' },
      { action: 'ACCEPT', dest: '10.0.0.1', proto: 'udp' },
      { type: 'in', action: 'ACCEPT' },
      { action: 'ACCEPT', macro: 'Web' },
    ])
    expect(may('10.0.0.1', 80)).toBe(true)
    expect(may('192.0.2.1', 22)).toBe(true)
    expect(may('10.0.0.1', 22)).toBe(false)
    expect(may('10.0.0.1', 443)).toBe(false)
  })

  it.each([
    ['the datacenter', { datacenter: 0 }],
    ['the guest', { guest: 0 }],
    ['the network device', { net0: NET.replace('firewall=1', 'firewall=0') }],
  ])('filters nothing while it is off for %s', (_, options) => {
    expect(filter([], options)('10.0.0.1', 80)).toBe(true)
    expect(filter([])('10.0.0.1', 80)).toBe(false)
  })
})
