import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSpool } from '../../../src/providers/local/spool.ts'
import type { Frame } from '../../../src/providers/local/spool-frames.ts'
import { openSpoolReader } from '../../../src/providers/local/spool-reader.ts'
import { has } from '../../support/has.ts'

describe('the log of a job', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'deputy-spool-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const readAll = async (from = 0): Promise<Frame[]> => {
    const reader = openSpoolReader(dir, from)
    const frames: Frame[] = []
    for (let next = await reader.next(); next.length > 0; next = await reader.next()) frames.push(...next)
    await reader.close()
    return frames
  }
  const bytesOnDisk = () => readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0)

  it('returns what was written, with streams, times and order', async () => {
    const spool = openSpool(dir, { head: 1000, tail: 1000 })
    spool.write('stdout', Buffer.from('one'), 1)
    spool.write('stderr', Buffer.from('two'), 2)
    spool.write('progress', Buffer.from('half'), 3)
    spool.write('stdout', Buffer.from('three'), 4)
    spool.close()
    const frames = await readAll()
    expect(frames.map(frame => [frame.kind, frame.at, frame.offset, frame.data.toString()])).toEqual([
      ['stdout', 1, 0, 'one'],
      ['stderr', 2, 3, 'two'],
      ['progress', 3, 6, 'half'],
      ['stdout', 4, 6, 'three'],
    ])
    expect(spool.outputBytes).toBe(11)
  })

  it.skipIf(!has('prlimit'))(
    'drops frames that do not fit on the disk, and goes on when there is room',
    async () => {
      const limitFiles = (...options: string[]) =>
        execFileSync('prlimit', ['--pid', String(process.pid), ...options], { encoding: 'utf8' }).trim()
      const before = limitFiles('--fsize', '--raw', '--noheadings', '-o', 'SOFT')
      const spool = openSpool(dir, { head: 1000, tail: 1000 })
      spool.write('stdout', Buffer.from('before'), 1)
      // Room for the first bytes of a frame, which must not stay.
      limitFiles(`--fsize=${bytesOnDisk() + 10}:`)
      try {
        spool.write('stdout', Buffer.from('dropped'), 2)
      } finally {
        limitFiles(`--fsize=${before}:`)
      }
      spool.write('stdout', Buffer.from('after'), 3)
      spool.close()
      expect((await readAll()).map(({ offset, data }) => [offset, data.toString()])).toEqual([
        [0, 'before'],
        [13, 'after'],
      ])
      expect(spool.outputBytes).toBe(18)
    },
  )

  it('keeps head and tail, counts the middle and bounds the disk, whatever is written', async () => {
    const writes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 120 })
    const caps = fc.record({
      head: fc.integer({ min: 1, max: 2000 }),
      tail: fc.integer({ min: 1, max: 2000 }),
    })
    await fc.assert(
      fc.asyncProperty(writes, caps, async (sizes, keep) => {
        rmSync(dir, { recursive: true })
        dir = mkdtempSync(join(tmpdir(), 'deputy-spool-'))
        const spool = openSpool(dir, keep)
        const all = Buffer.alloc(sizes.reduce((sum, size) => sum + size, 0))
        let at = 0
        for (const size of sizes) {
          const data = Buffer.from(Array.from({ length: size }, (_, index) => (at + index) % 251))
          data.copy(all, at)
          at += size
          spool.write('stdout', data, 0)
        }
        spool.close()
        const frames = await readAll()
        expect(spool.outputBytes).toBe(all.length)
        for (const frame of frames)
          expect(
            Buffer.from(frame.data).equals(all.subarray(frame.offset, frame.offset + frame.data.length)),
          ).toBe(true)
        const kept = new Uint8Array(all.length)
        for (const frame of frames) kept.fill(1, frame.offset, frame.offset + frame.data.length)
        expect(kept.subarray(0, keep.head).includes(0)).toBe(false)
        expect(kept.subarray(Math.max(0, all.length - keep.tail)).includes(0)).toBe(false)
        expect(bytesOnDisk()).toBeLessThanOrEqual(4 * (keep.head + 2 * keep.tail) + 10 * (700 + 24))
      }),
      { numRuns: 60 },
    )
  })

  it('can be read from any offset, in the middle of a frame too, while it is written', async () => {
    const spool = openSpool(dir, { head: 100, tail: 8000 })
    let whole = ''
    const print = (index: number) => {
      const text = String(index).padEnd(20)
      whole += text
      spool.write(index % 3 === 0 ? 'stderr' : 'stdout', Buffer.from(text), index)
      if (index % 5 === 0) spool.write('progress', Buffer.from(String(whole.length)), index)
    }
    for (let index = 0; index < 200; index++) print(index)
    expect(readdirSync(dir).length).toBeGreaterThan(2)
    for (let from = 0; from < whole.length; from += 101) {
      const reader = openSpoolReader(dir, from)
      let text = ''
      const read = async () => {
        for (let next = await reader.next(); next.length > 0; next = await reader.next())
          for (const { kind, offset, data } of next) {
            if (kind === 'progress') expect(Number(data.toString())).toBeGreaterThanOrEqual(from)
            else expect(offset).toBe(from + text.length)
            if (kind !== 'progress') text += data.toString()
          }
        expect(text).toBe(whole.slice(from))
      }
      await read()
      print(from)
      await read()
      await reader.close()
    }
    spool.close()
  })

  it('is read from an offset whose segment is gone with what is left', async () => {
    const spool = openSpool(dir, { head: 100, tail: 400 })
    for (let index = 0; index < 100; index++) spool.write('stdout', Buffer.alloc(40, index), 0)
    spool.close()
    const all = await readAll()
    for (const from of [0, 50, 150, 1000, 3000, 3999, 4000, 5000]) {
      const wanted = all.filter(({ offset, data }) => offset + data.length > from)
      const bytes = (frames: readonly Frame[]) => frames.map(({ offset, data }) => offset + data.length)
      expect(bytes(await readAll(from))).toEqual(bytes(wanted))
    }
  })

  it('skips segments that were dropped before a slow reader reached them', async () => {
    const spool = openSpool(dir, { head: 100, tail: 400 })
    spool.write('stdout', Buffer.alloc(50), 0)
    const reader = openSpoolReader(dir, 0)
    await reader.next()
    for (let index = 0; index < 100; index++) spool.write('stdout', Buffer.alloc(40, index), 0)
    let last: Frame | undefined
    let bytes = 0
    for (let next = await reader.next(); next.length > 0; next = await reader.next())
      for (const frame of next) {
        expect(last === undefined || frame.offset >= last.offset + last.data.length).toBe(true)
        last = frame
        bytes += frame.data.length
      }
    spool.close()
    await reader.close()
    expect(last!.offset + last!.data.length).toBe(spool.outputBytes)
    expect(bytes).toBeLessThan(1200)
    expect(bytes).toBeGreaterThanOrEqual(400)
  })

  it('splits data larger than a frame', async () => {
    const spool = openSpool(dir, { head: 10e6, tail: 1 })
    spool.write('stdout', Buffer.alloc(1_000_000, 7), 0)
    spool.close()
    const frames = await readAll()
    expect(frames.length).toBeGreaterThan(1)
    expect(frames.reduce((sum, frame) => sum + frame.data.length, 0)).toBe(1_000_000)
  })
})
