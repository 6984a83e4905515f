import { expect, it } from 'vitest'
import { networkIsolation } from '../../../../src/runtimes/proxmox/isolation.ts'

it('claims no isolation that nobody keeps', () => {
  expect(networkIsolation({ network: 'none', filter: 'on' }, undefined)).toBe('no network but the callback')
  expect(networkIsolation({ network: 'full', filter: 'on' }, undefined)).toBe('filtered network')
  expect(networkIsolation({ network: 'none', filter: 'on' }, ['a.example'])).toBe('network: only a.example')
  for (const domains of [undefined, ['a.example']])
    expect(networkIsolation({ network: 'none', filter: 'off' }, domains)).toBe('unfiltered network')
  for (const known of [{ filter: 'unknown' }, {}] as const)
    expect(networkIsolation({ network: 'none', ...known }, undefined)).toContain('if the firewall')
})
