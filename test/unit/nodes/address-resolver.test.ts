import { describe, expect, it } from 'vitest'
import { localNetworks, unusableKind } from '../../../src/nodes/addresses/address-kinds.ts'
import { createAddressResolver } from '../../../src/nodes/addresses/address-resolver.ts'
import { findSelf } from '../../../src/nodes/addresses/find-self.ts'
import { addressesIn, type NameService } from '../../../src/nodes/addresses/name-services.ts'
import { parseCluster, parseNode } from '../../../src/nodes/inventory.ts'

const lan = localNetworks({
  eth0: [{ address: '10.0.0.5', netmask: '', family: 'IPv4', mac: '', internal: false, cidr: '10.0.0.5/24' }],
  docker0: [
    { address: '172.18.0.1', netmask: '', family: 'IPv4', mac: '', internal: false, cidr: '172.18.0.1/16' },
  ],
})
const signal = new AbortController().signal

const nodes = (...hosts: (string | object)[]) =>
  hosts.map((host, index) => parseNode({ id: `n${index}`, ...(typeof host === 'string' ? { host } : host) }))

describe('an address from a name service', () => {
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

  it('may be in a default bridge network if the LAN uses that range', () => {
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

  it('is extracted from the output of a tool', () => {
    expect(addressesIn('a.local\t10.0.0.3\nip_address: fd00::3, 10.0.0.3 STREAM')).toEqual([
      '10.0.0.3',
      'fd00::3',
    ])
  })
})

describe('the address resolver', () => {
  const source = (name: string, answers: Record<string, string[]>, asked: string[] = []): NameService => ({
    name,
    handles: () => true,
    lookUp: host => {
      asked.push(`${name}:${host}`)
      return Promise.resolve(answers[host] ?? [])
    },
  })
  const at = { time: 0 }
  const resolver = (nameServices: NameService[], more = {}) => {
    at.time = 0
    return createAddressResolver({
      ttlMs: 1000,
      nameServices,
      networks: () => lan,
      now: () => at.time,
      ...more,
    })
  }

  it('asks the name services in order until one knows the host', async () => {
    const asked: string[] = []
    const addresses = resolver([
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

  it('continues a shared lookup when one caller is cancelled', async () => {
    let answer: (addresses: string[]) => void = () => undefined
    const slow: NameService = {
      name: 'dns',
      handles: () => true,
      lookUp: (_, asking) =>
        new Promise((resolve, reject) => {
          answer = resolve
          asking.addEventListener('abort', () => reject(asking.reason))
        }),
    }
    const addresses = resolver([slow])
    const hasty = new AbortController()
    const first = addresses.resolve({ host: 'h' }, hasty.signal)
    const second = addresses.resolve({ host: 'h' }, signal)
    hasty.abort(new Error('no time'))
    await expect(first).rejects.toThrow('no time')
    answer(['10.0.0.7'])
    expect((await second).address).toBe('10.0.0.7')
  })

  it('refuses a loopback fallback unless the configuration allows it', async () => {
    for (const fallback of ['0.0.0.0', '127.0.0.1', '::1', '224.0.0.1', '169.254.1.1']) {
      const refused = resolver([source('dns', {})]).resolve({ host: 'h', fallback }, signal)
      await expect(refused).rejects.toThrow(`the fallback is ${fallback}`)
    }
    const lab = resolver([source('dns', {})], { allow: ['loopback'] })
    expect((await lab.resolve({ host: 'h', fallback: '127.0.0.1' }, signal)).address).toBe('127.0.0.1')
    const bridge = resolver([source('dns', {})]).resolve({ host: 'h', fallback: '172.17.0.9' }, signal)
    expect((await bridge).address).toBe('172.17.0.9')
  })

  it('caches an address for the configured time', async () => {
    const asked: string[] = []
    const addresses = resolver([source('dns', { h: ['10.0.0.7'] }, asked)])
    await addresses.resolve({ host: 'h' }, signal)
    at.time = 999
    await addresses.resolve({ host: 'h' }, signal)
    expect(asked).toHaveLength(1)
    at.time = 1000
    await addresses.resolve({ host: 'h' }, signal)
    expect(asked).toHaveLength(2)
  })

  it('shares one lookup between concurrent callers', async () => {
    const asked: string[] = []
    const addresses = resolver([source('dns', { h: ['10.0.0.7'] }, asked)])
    await Promise.all(Array.from({ length: 20 }, () => addresses.resolve({ host: 'h' }, signal)))
    expect(asked).toHaveLength(1)
  })

  it('skips unusable addresses and lists them when none is left', async () => {
    const addresses = resolver([
      source('mdns', { h: ['169.254.3.3', '172.18.0.2'] }),
      source('dns', { h: ['127.0.1.1'] }),
    ])
    await expect(addresses.resolve({ host: 'h' }, signal)).rejects.toThrow(
      "No usable address for 'h': mdns returned 169.254.3.3, which is a link-local address; mdns returned 172.18.0.2, which is a container bridge; dns returned 127.0.1.1, which is this computer itself",
    )
  })

  it('accepts a kind that the configuration allows', async () => {
    const addresses = resolver([source('dns', { h: ['127.0.1.1'] })], { allow: ['loopback'] })
    expect((await addresses.resolve({ host: 'h' }, signal)).address).toBe('127.0.1.1')
  })

  it('falls back to the address of the inventory', async () => {
    const addresses = resolver([source('dns', {})])
    expect(await addresses.resolve({ host: 'h', fallback: '10.0.0.9' }, signal)).toMatchObject({
      address: '10.0.0.9',
      source: 'fallback',
    })
  })

  it('prefers an address where a login succeeded, until it fails', async () => {
    const addresses = resolver([source('dns', { h: ['10.0.0.7', '10.0.0.8'] })])
    expect((await addresses.resolve({ host: 'h' }, signal)).address).toBe('10.0.0.7')
    addresses.recordSuccess('h', '10.0.0.8')
    expect(await addresses.resolve({ host: 'h' }, signal)).toMatchObject({
      address: '10.0.0.8',
      verified: true,
    })
    addresses.recordFailure('h', '10.0.0.8')
    expect(await addresses.resolve({ host: 'h' }, signal)).toMatchObject({
      address: '10.0.0.7',
      verified: false,
    })
  })

  it('uses the fallback after the resolved address failed', async () => {
    const addresses = resolver([source('dns', { h: ['10.0.0.7'] })])
    const place = { host: 'h', fallback: '10.0.0.9' }
    expect((await addresses.resolve(place, signal)).address).toBe('10.0.0.7')
    addresses.recordFailure('h', '10.0.0.7')
    expect((await addresses.resolve(place, signal)).address).toBe('10.0.0.9')
    addresses.recordSuccess('h', '10.0.0.9')
    expect(await addresses.resolve(place, signal)).toMatchObject({ address: '10.0.0.9', verified: true })
  })

  it('accepts a configured address of any kind that a machine can have', async () => {
    const addresses = resolver([])
    expect((await addresses.resolve({ host: '127.0.0.1' }, signal)).address).toBe('127.0.0.1')
    expect((await addresses.resolve({ host: 'fd00::5' }, signal)).address).toBe('fd00::5')
    await expect(addresses.resolve({ host: '0.0.0.0' }, signal)).rejects.toThrow('the unspecified address')
    await expect(addresses.resolve({ host: '224.0.0.1' }, signal)).rejects.toThrow('multicast')
  })

  it('ignores a name service that fails', async () => {
    const broken: NameService = {
      name: 'mdns',
      handles: () => true,
      lookUp: () => Promise.reject(new Error('no daemon')),
    }
    const addresses = resolver([broken, source('dns', { h: ['10.0.0.7'] })])
    expect((await addresses.resolve({ host: 'h' }, signal)).address).toBe('10.0.0.7')
  })
})

describe('this computer in the inventory', () => {
  const known = { hostName: 'Studio.lan', addresses: ['10.0.0.5', 'fd00::5'], towards: undefined, signal }

  it.each([
    ['its address', ['10.0.0.9', '10.0.0.5'], 'n1'],
    ['its IPv6 address', ['fd00::5'], 'n0'],
    ['its full name', ['studio.lan'], 'n0'],
    ['its short name', ['studio'], 'n0'],
    ['its mDNS name', ['STUDIO.local'], 'n0'],
    ['its fallback address', [{ host: 'x.local', fallback: '10.0.0.5' }], 'n0'],
    ['nothing of it', ['10.0.0.6', 'studio2', 'studio.other'], undefined],
    ['another port: a container', [{ host: '10.0.0.5', port: 2222 }], undefined],
    ['a jump host on the way', [{ host: 'studio', jump: 'bastion' }], undefined],
  ])('is recognised by %s', async (_, hosts, id) => {
    expect((await findSelf({ ...known, nodes: nodes(...hosts) })).id).toBe(id)
  })

  it('is recognised only by its address towards the gateway, if one is set', async () => {
    const asked = { ...known, nodes: nodes('10.0.0.5', '127.0.0.1'), towards: '127.0.0.1' }
    expect(await findSelf(asked)).toEqual({ address: '127.0.0.1', id: 'n1' })
  })
})

describe('a name server of the configuration', () => {
  it.each([
    ['10.0.0.53', true],
    ['10.0.0.53:5353', true],
    ['fd00::53', true],
    ['[fd00::53]:5353', true],
    ['dns.lan', false],
    ['-x', false],
    ['10.0.0.53:99999', false],
  ])('%s is valid: %s', (value, valid) => {
    const parse = () => parseCluster({ addresses: { dns: value } })
    if (valid) expect(parse().addresses.dns).toBe(value)
    else expect(parse).toThrow('must be an IP address')
  })
})
