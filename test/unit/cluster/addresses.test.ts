import { describe, expect, it } from 'vitest'
import { createAddressBook } from '../../../src/cluster/addresses/book.ts'
import { localNetworks, unusableKind } from '../../../src/cluster/addresses/kinds.ts'
import { addressesIn, type NamedSource } from '../../../src/cluster/addresses/sources.ts'

const lan = localNetworks({
  eth0: [{ address: '10.0.0.5', netmask: '', family: 'IPv4', mac: '', internal: false, cidr: '10.0.0.5/24' }],
  docker0: [
    { address: '172.18.0.1', netmask: '', family: 'IPv4', mac: '', internal: false, cidr: '172.18.0.1/16' },
  ],
})
const signal = new AbortController().signal

describe('an answer of a name service', () => {
  it.each([
    ['10.0.0.7', undefined],
    ['172.16.4.4', undefined],
    ['172.31.0.9', undefined],
    ['192.168.1.20', undefined],
    ['fd00::5', undefined],
    ['2001:db8::1', undefined],
    ['127.0.0.1', 'loopback'],
    ['127.4.4.4', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['169.254.1.1', 'link-local'],
    ['fe80::1', 'link-local'],
    ['224.0.0.1', 'multicast'],
    ['ff02::1', 'multicast'],
    ['0.0.0.0', 'unspecified'],
    ['::', 'unspecified'],
    ['255.255.255.255', 'broadcast'],
    ['172.17.0.2', 'container-bridge'],
    ['172.18.3.3', 'container-bridge'],
    ['1_0.1.1.1', 'not-an-address'],
    ['+1.2.3.4', 'not-an-address'],
    ['010.1.1.1', 'not-an-address'],
    ['', 'not-an-address'],
  ])('%j is %s', (address, kind) => expect(unusableKind(address, lan)).toBe(kind))

  it('may be in a default bridge network when that is the LAN', () => {
    const office = localNetworks({
      eth0: [
        {
          address: '172.17.0.9',
          netmask: '',
          family: 'IPv4',
          mac: '',
          internal: false,
          cidr: '172.17.0.9/16',
        },
      ],
    })
    expect(unusableKind('172.17.0.2', office)).toBeUndefined()
  })

  it('is found among the words of a tool', () => {
    expect(addressesIn('a.local\t10.0.0.3\nip_address: fd00::3, 10.0.0.3 STREAM')).toEqual([
      '10.0.0.3',
      'fd00::3',
    ])
  })
})

describe('the address book', () => {
  const source = (name: string, answers: Record<string, string[]>, asked: string[] = []): NamedSource => ({
    name,
    answers: () => true,
    ask: host => {
      asked.push(`${name}:${host}`)
      return Promise.resolve(answers[host] ?? [])
    },
  })
  const at = { time: 0 }
  const book = (sources: NamedSource[], more = {}) => {
    at.time = 0
    return createAddressBook({ ttlMs: 1000, sources, networks: () => lan, now: () => at.time, ...more })
  }

  it('asks the services in order and stops at the first that knows', async () => {
    const asked: string[] = []
    const addresses = book([
      source('mdns', {}, asked),
      source('dns', { h: ['10.0.0.7'] }, asked),
      source('hosts', {}, asked),
    ])
    expect(await addresses.resolve({ host: 'h' }, signal)).toEqual({
      address: '10.0.0.7',
      source: 'dns',
      verified: false,
    })
    expect(asked).toEqual(['mdns:h', 'dns:h'])
  })

  it('remembers an answer for its time to live', async () => {
    const asked: string[] = []
    const addresses = book([source('dns', { h: ['10.0.0.7'] }, asked)])
    await addresses.resolve({ host: 'h' }, signal)
    at.time = 999
    await addresses.resolve({ host: 'h' }, signal)
    expect(asked).toHaveLength(1)
    at.time = 1000
    await addresses.resolve({ host: 'h' }, signal)
    expect(asked).toHaveLength(2)
  })

  it('asks once for many who want to know at the same time', async () => {
    const asked: string[] = []
    const addresses = book([source('dns', { h: ['10.0.0.7'] }, asked)])
    await Promise.all(Array.from({ length: 20 }, () => addresses.resolve({ host: 'h' }, signal)))
    expect(asked).toHaveLength(1)
  })

  it('passes over what cannot be a machine, and says why when nothing remains', async () => {
    const addresses = book([
      source('mdns', { h: ['169.254.3.3', '172.18.0.2'] }),
      source('dns', { h: ['127.0.1.1'] }),
    ])
    await expect(addresses.resolve({ host: 'h' }, signal)).rejects.toThrow(
      'no usable address for "h": mdns said 169.254.3.3, which is a link-local address; mdns said 172.18.0.2, which is a bridge for containers; dns said 127.0.1.1, which is this computer itself',
    )
  })

  it('accepts a kind that the configuration allows', async () => {
    const addresses = book([source('dns', { h: ['127.0.1.1'] })], { allow: ['loopback'] })
    expect((await addresses.resolve({ host: 'h' }, signal)).address).toBe('127.0.1.1')
  })

  it('falls back to the address of the inventory', async () => {
    const addresses = book([source('dns', {})])
    expect(await addresses.resolve({ host: 'h', fallback: '10.0.0.9' }, signal)).toMatchObject({
      address: '10.0.0.9',
      source: 'fallback',
    })
  })

  it('prefers an address where a login worked, and drops it when it fails', async () => {
    const addresses = book([source('dns', { h: ['10.0.0.7', '10.0.0.8'] })])
    expect((await addresses.resolve({ host: 'h' }, signal)).address).toBe('10.0.0.7')
    addresses.verified('h', '10.0.0.8')
    expect(await addresses.resolve({ host: 'h' }, signal)).toMatchObject({
      address: '10.0.0.8',
      verified: true,
    })
    addresses.failed('h', '10.0.0.8')
    expect(await addresses.resolve({ host: 'h' }, signal)).toMatchObject({
      address: '10.0.0.7',
      verified: false,
    })
  })

  it('tries the fallback after the answer of a name service failed', async () => {
    const addresses = book([source('dns', { h: ['10.0.0.7'] })])
    const place = { host: 'h', fallback: '10.0.0.9' }
    expect((await addresses.resolve(place, signal)).address).toBe('10.0.0.7')
    addresses.failed('h', '10.0.0.7')
    expect((await addresses.resolve(place, signal)).address).toBe('10.0.0.9')
    addresses.verified('h', '10.0.0.9')
    expect(await addresses.resolve(place, signal)).toMatchObject({ address: '10.0.0.9', verified: true })
  })

  it('takes an address the user wrote as it is, unless no machine can have it', async () => {
    const addresses = book([])
    expect((await addresses.resolve({ host: '127.0.0.1' }, signal)).address).toBe('127.0.0.1')
    expect((await addresses.resolve({ host: 'fd00::5' }, signal)).address).toBe('fd00::5')
    await expect(addresses.resolve({ host: '0.0.0.0' }, signal)).rejects.toThrow('no address at all')
    await expect(addresses.resolve({ host: '224.0.0.1' }, signal)).rejects.toThrow('multicast')
  })

  it('survives a name service that fails', async () => {
    const broken: NamedSource = {
      name: 'mdns',
      answers: () => true,
      ask: () => Promise.reject(new Error('no daemon')),
    }
    const addresses = book([broken, source('dns', { h: ['10.0.0.7'] })])
    expect((await addresses.resolve({ host: 'h' }, signal)).address).toBe('10.0.0.7')
  })
})
