import { describe, expect, it } from 'vitest'
import { anywhereElse, createAllowList } from '../../../src/egress/allow-list.ts'

const may = (entries: string[], host: string, port = 443) =>
  createAllowList(entries).allowsHost(host, port).ok
const reaches = (entries: string[], host: string, address: string, port = 443) =>
  createAllowList(entries).allowsAddress(host, port, address).ok

describe('the network list of a job', () => {
  it('matches domains exactly, without regard to case and a final dot', () => {
    expect(may(['example.org'], 'example.org')).toBe(true)
    expect(may(['Example.ORG'], 'EXAMPLE.org.')).toBe(true)
    for (const host of ['www.example.org', 'example.org.evil.com', 'notexample.org', 'example.or', ''])
      expect(may(['example.org'], host), host).toBe(false)
  })

  it('matches what is below a wildcard, and not the domain itself', () => {
    for (const host of ['a.example.org', 'a.b.example.org']) expect(may(['*.example.org'], host)).toBe(true)
    for (const host of ['example.org', 'aexample.org', 'example.org.evil.com', '.example.org'])
      expect(may(['*.example.org'], host), host).toBe(false)
  })

  it('keeps to the port where one is given', () => {
    expect(may(['example.org:8443'], 'example.org', 8443)).toBe(true)
    expect(may(['example.org:8443'], 'example.org', 443)).toBe(false)
    expect(may(['example.org'], 'example.org', 8443)).toBe(true)
  })

  it('takes addresses only as they are listed', () => {
    expect(may(['example.org'], '93.184.216.34')).toBe(false)
    expect(may(['*.1.1'], '10.0.1.1')).toBe(false)
    expect(may(['10.0.0.1:80'], '10.0.0.1', 80)).toBe(true)
    expect(may(['example.org'], '[::1]')).toBe(false)
  })

  it('refuses a listed name that stands for a private address', () => {
    for (const address of [
      ...[
        '127.0.0.1',
        '10.1.2.3',
        '172.16.0.1',
        '192.168.1.1',
        '169.254.169.254',
        '100.64.0.1',
        '0.0.0.0',
        '224.0.0.1',
      ],
      ...[
        '::1',
        '::',
        'fe80::1',
        'fc00::1',
        'fd12::1',
        '::ffff:127.0.0.1',
        '64:ff9b::7f00:1',
        'not an address',
      ],
    ])
      expect(reaches(['example.org'], 'example.org', address), address).toBe(false)
    for (const address of ['93.184.216.34', '2606:2800:220:1::1', '172.32.0.1'])
      expect(reaches(['example.org'], 'example.org', address), address).toBe(true)
  })

  it('reaches a private address that is itself listed', () => {
    expect(reaches(['git.internal', '10.0.0.5'], 'git.internal', '10.0.0.5')).toBe(true)
    expect(reaches(['git.internal', '10.0.0.5:22'], 'git.internal', '10.0.0.5')).toBe(false)
    expect(reaches(['localhost'], 'localhost', '127.0.0.1')).toBe(true)
  })

  it('opens no private address where none may be reached, listed or not', () => {
    const list = createAllowList(['localhost', '10.0.0.1', 'example.org'], { privateAddresses: false })
    for (const [host, address] of [
      ['localhost', '127.0.0.1'],
      ['10.0.0.1', '10.0.0.1'],
      ['example.org', '192.168.1.1'],
    ] as const)
      expect(list.allowsAddress(host, 443, address)).toMatchObject({
        ok: false,
        reason: expect.stringContaining(`${address}, a private address`),
      })
    expect(list.allowsAddress('example.org', 443, '93.184.216.34')).toEqual({ ok: true })
  })
})

describe('a network without a list', () => {
  const reached = (address: string) => anywhereElse.allowsAddress('a.example', 80, address)

  it('has every host, private ones too', () => {
    expect(anywhereElse.allowsHost('a.example', 1)).toEqual({ ok: true })
    for (const address of ['93.184.216.34', '10.0.0.1', '192.168.1.1', '2001:db8::1', 'fd00::1'])
      expect(reached(address), address).toEqual({ ok: true })
  })

  it('ends at this computer and its metadata service', () => {
    for (const address of ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1'])
      expect(reached(address).ok, address).toBe(false)
    for (const address of ['169.254.169.254', 'fe80::1', 'not-an-address'])
      expect(reached(address).ok, address).toBe(false)
  })
})
