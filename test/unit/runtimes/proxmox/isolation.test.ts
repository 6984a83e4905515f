import { expect, it } from 'vitest'
import { networkIsolation } from '../../../../src/runtimes/proxmox/isolation.ts'

const callback = { channel: 'callback' } as const

it('claims no isolation that nobody keeps', () => {
  expect(networkIsolation({ network: 'none', filter: 'on' }, callback)).toBe('no network but the callback')
  expect(networkIsolation({ network: 'full', filter: 'on' }, callback)).toBe('filtered network')
  expect(networkIsolation({ network: 'none', filter: 'on' }, { ...callback, domains: ['a.example'] })).toBe(
    'network: only a.example',
  )
  for (const domains of [undefined, ['a.example']])
    expect(networkIsolation({ network: 'none', filter: 'off' }, { ...callback, domains })).toBe(
      'unfiltered network',
    )
  for (const known of [{ filter: 'unknown' }, {}] as const)
    expect(networkIsolation({ network: 'none', ...known }, callback)).toContain('if the firewall')
})

it('tells of no callback where the guest agent is the channel', () => {
  expect(networkIsolation({ network: 'none', filter: 'on' }, { channel: 'agent' })).toBe('no network')
})
