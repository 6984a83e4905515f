import { describe, expect, it } from 'vitest'
import { uidRange } from '../../../src/providers/sandbox/sandbox-uids.ts'

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
