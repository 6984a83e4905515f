import { describe, expect, it } from 'vitest'
import { freeUids, uidRange } from '../../../src/providers/sandbox/sandbox-uids.ts'

describe.skipIf(process.getuid?.() !== 0)('the user ids of a root daemon', () => {
  it('are never root and differ from home to home', () => {
    const all = '         0          0 4294967295\n'
    const first = uidRange('/a', all)!
    expect(first.first).toBeGreaterThan(65_535)
    expect(uidRange('/b', all)!.first).not.toBe(first.first)
    expect(uidRange('/a', '0 100000 65536\n')).toEqual({ first: 61_000, count: 180 })
    expect(uidRange('/a', '0 1000 1\n')).toBeNull()
  })
})

describe('the user ids of a shim', () => {
  const range = { first: 1000, count: 40 }

  it('are a block that no other shim uses', () => {
    expect(freeUids(range, [], 16)).toEqual({ first: 1000, count: 16 })
    expect(freeUids(range, [{ first: 1000, count: 16 }], 16)).toEqual({ first: 1016, count: 16 })
    // Of a shim that holds one machine.
    expect(freeUids(range, [{ first: 1003, count: 1 }], 16)).toEqual({ first: 1016, count: 16 })
  })

  it('are one when no block is left, and the last one when none is', () => {
    const blocks = [
      { first: 1000, count: 16 },
      { first: 1016, count: 16 },
    ]
    expect(freeUids(range, blocks, 16)).toEqual({ first: 1032, count: 1 })
    expect(freeUids(range, [...blocks, { first: 1032, count: 8 }], 16)).toEqual({ first: 1039, count: 1 })
  })

  it('are those of the daemon when it is not root', () => {
    expect(freeUids(null, [], 16)).toBeNull()
  })
})
