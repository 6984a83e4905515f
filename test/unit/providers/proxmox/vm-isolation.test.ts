import { describe, expect, it } from 'vitest'
import { networkIsolation } from '../../../../src/providers/proxmox/vm-isolation.ts'

const callback = { channel: 'callback', reach: { tried: ['192.0.2.1:8006'], reached: [] } } as const
const NOT_REACHED = '(the node did not answer at 192.0.2.1:8006)'

describe('the isolation of a job', () => {
  it('claims nothing that nobody keeps', () => {
    expect(networkIsolation({ network: 'none', filter: 'on' }, callback)).toBe(
      `no network but the callback ${NOT_REACHED}`,
    )
    expect(networkIsolation({ network: 'full', filter: 'on' }, callback)).toBe(
      `filtered network ${NOT_REACHED}`,
    )
    const listed = { ...callback, domains: ['a.example'] }
    expect(networkIsolation({ network: 'none', filter: 'on' }, listed)).toBe(
      `network: only a.example ${NOT_REACHED}`,
    )
    for (const circumstances of [callback, listed])
      expect(networkIsolation({ network: 'none', filter: 'off' }, circumstances)).toBe('unfiltered network')
    for (const known of [{ filter: 'unknown' }, {}] as const)
      expect(networkIsolation({ network: 'none', ...known }, callback)).toContain('if the firewall')
  })

  it('tells of no callback where the guest agent is the channel', () => {
    expect(networkIsolation({ network: 'none', filter: 'on' }, { ...callback, channel: 'agent' })).toBe(
      `no network ${NOT_REACHED}`,
    )
  })

  it('tells what a probe saw of the node, and when none did', () => {
    const reach = { tried: ['192.0.2.1:8006', '[2001:db8::1]:8006'], reached: ['192.0.2.1:8006'] }
    expect(networkIsolation({ network: 'none', filter: 'on' }, { ...callback, reach })).toContain(
      '(the node answered at 192.0.2.1:8006)',
    )
    expect(networkIsolation({ network: 'none', filter: 'on' }, { channel: 'callback' })).toContain(
      'the node itself was not tried: deputy doctor --probe',
    )
  })
})
