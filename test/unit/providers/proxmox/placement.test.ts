import { describe, expect, it } from 'vitest'
import type { StorageEntry } from '../../../../src/providers/proxmox/cluster-guests.ts'
import { NoRoomError, type PlacementInput, place } from '../../../../src/providers/proxmox/placement.ts'

const GIB = 2 ** 30

const storage = (
  id: string,
  type: string,
  shared: boolean,
  more: Partial<StorageEntry> = {},
): StorageEntry => ({
  storage: id,
  shared,
  type,
  content: ['images'],
  active: true,
  available: 1,
  ...more,
})
const STORAGES = [
  storage('shared', 'nfs', true),
  storage('local', 'lvmthin', false),
  storage('thick', 'lvm', true),
]
const SEEDS = storage('seeds', 'dir', false, { content: ['iso'] })

const node = (name: string, freeMemory?: number, online = true) => ({
  node: name,
  online,
  freeMemory,
  load: undefined,
})
const offer = (storages: readonly StorageEntry[] = STORAGES, bridges: readonly string[] = ['vmbr0']) => ({
  storages,
  bridges: new Set(bridges),
})
const drive = (at: string, kind: 'disk' | 'cdrom' | 'cloudinit' = 'disk', key = 'scsi0') => ({
  key,
  kind,
  storage: at,
  bytes: GIB,
})
const template = (...drives: ReturnType<typeof drive>[]) => ({ vmid: 9000, node: 'a', config: {}, drives })

const input = (more: Partial<PlacementInput> = {}): PlacementInput => ({
  template: template(drive('shared')),
  nodes: [node('a', 4 * GIB), node('b', 9 * GIB)],
  guests: [],
  offers: new Map([
    ['a', offer()],
    ['b', offer()],
  ]),
  promised: new Map(),
  memory: GIB,
  ...more,
})

describe('placement', () => {
  it('goes where the most memory is free', () => {
    const nodes = [...input().nodes, node('c', 99 * GIB, false)]
    expect(place(input({ nodes }))).toEqual({ node: 'b', linked: true })
  })

  it('counts what was promised to machines that are being made', () => {
    expect(place(input({ promised: new Map([['b', 6 * GIB]]) })).node).toBe('a')
    const unknown = { nodes: [node('a'), node('b')], promised: new Map([['a', GIB]]) }
    expect(place(input(unknown)).node).toBe('b')
  })

  it('counts guests where the token may not see the load', () => {
    const guest = (vmid: number, at: string) => ({
      vmid,
      node: at,
      name: 'x',
      status: 'running',
      template: false,
      tags: [],
      pool: undefined,
      maxmem: GIB,
    })
    const guests = [guest(1, 'a'), guest(2, 'a'), guest(3, 'b')]
    expect(place(input({ nodes: [node('a'), node('b')], guests })).node).toBe('b')
  })

  it('stays on the node of a template with anything local or unknown, be it an image in a CD-ROM drive', () => {
    for (const drives of [
      [drive('local')],
      [drive('hidden')],
      [drive('shared'), drive('local', 'cdrom', 'ide2')],
      [drive('shared'), drive('local', 'cloudinit', 'ide0')],
    ])
      expect(place(input({ template: template(...drives) })).node).toBe('a')
    const nodes = [node('a', GIB, false), node('b', 9 * GIB)]
    expect(() => place(input({ template: template(drive('local')), nodes }))).toThrow('offline')
  })

  it('leaves out nodes that lack a storage, the place for seeds or the bridge', () => {
    const b = (offered: ReturnType<typeof offer> | undefined, more: Partial<PlacementInput> = {}) =>
      place(
        input({
          offers: new Map([
            ['a', offer([...STORAGES, SEEDS])],
            ...(offered ? [['b', offered] as const] : []),
          ]),
          ...more,
        }),
      ).node
    expect(b(offer())).toBe('b')
    expect(b(undefined)).toBe('a')
    expect(b(offer([STORAGES[1]!]))).toBe('a')
    expect(b(offer([storage('shared', 'nfs', true, { active: false })]))).toBe('a')
    expect(b(offer(), { seedStorage: 'seeds' })).toBe('a')
    expect(b(offer(), { seedStorage: 'seen-nowhere' })).toBe('b')
    expect(b(offer(STORAGES, ['vmbr9']), { bridge: 'vmbr0' })).toBe('a')
    expect(b(offer(STORAGES, ['vmbr9']), { bridge: 'seen-nowhere' })).toBe('b')
  })

  it('says what every node lacks', () => {
    const offers = new Map([
      ['a', offer(STORAGES, ['vmbr0'])],
      ['b', offer([...STORAGES, SEEDS], ['vmbr1'])],
    ])
    expect(() => place(input({ offers, seedStorage: 'seeds', bridge: 'vmbr0' }))).toThrow(
      'a lacks storage seeds; b lacks bridge vmbr0',
    )
  })

  it('finds no place where the memory is taken, unless nobody knows', () => {
    expect(() => place(input({ memory: 16 * GIB }))).toThrow(NoRoomError)
    expect(place(input({ memory: 6 * GIB })).node).toBe('b')
    expect(place(input({ memory: 16 * GIB, nodes: [node('a')] })).node).toBe('a')
  })

  it('copies in full where a storage cannot link, whatever the CD-ROM drives stand on', () => {
    expect(place(input({ template: template(drive('thick')) })).linked).toBe(false)
    expect(
      place(input({ template: template(drive('shared'), drive('thick', 'cdrom', 'ide2')) })).linked,
    ).toBe(true)
  })
})
