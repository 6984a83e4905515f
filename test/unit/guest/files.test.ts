import fc from 'fast-check'
import { pack } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { encodeNames, parseFileList } from '../../../src/guest/protocol.ts'
import { readTarFiles, type SentFile } from '../../../src/guest/tar-files.ts'

describe('the list of a workspace', () => {
  it('is read as find writes it, with fractions of seconds or without', () => {
    const list = 'f 12 644 1700000000.5000000000 a b\0l 3 777 17 link\0p 0 600 -5.0 new\nline\0\0'
    expect(parseFileList(Buffer.from(list))).toEqual({
      files: [
        { path: 'a b', type: 'file', size: 12, mode: 0o644, modified: 1_700_000_000 },
        { path: 'link', type: 'link', size: 3, mode: 0o777, modified: 17 },
        { path: 'new\nline', type: 'other', size: 0, mode: 0o600, modified: -5 },
      ],
      truncated: false,
      unnamed: 0,
    })
  })

  it('is known to be cut when its end is missing', () => {
    expect(parseFileList(Buffer.from('f 1 644 1 a\0f 1 644 1 b'))).toMatchObject({
      files: [{ path: 'a' }],
      truncated: true,
    })
    expect(parseFileList(Buffer.alloc(0))).toMatchObject({ files: [], truncated: true })
  })

  it('leaves out ways to elsewhere and what is no record, and counts names that are no UTF-8', () => {
    const records = ['f 1 644 1 ../x', 'f 1 644 1 /etc/passwd', 'f 1 644 1 a/../../x', 'f -1 644 1 x', 'junk']
    const bytes = Buffer.concat([
      Buffer.from(records.map(record => `${record}\0`).join('')),
      Buffer.from('f 1 644 1 bad\xff\0', 'latin1'),
      Buffer.from('\0'),
    ])
    expect(parseFileList(bytes)).toEqual({ files: [], truncated: false, unnamed: 1 })
  })

  it('survives any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
        for (const { path } of parseFileList(Buffer.from(bytes)).files) expect(path).not.toMatch(/^\/|\.\./)
      }),
    )
  })

  it('is answered with names that are no options and end with NUL', () => {
    expect(encodeNames(['-rf', 'a\nb'])).toBe('./-rf\0./a\nb\0')
    expect(encodeNames([])).toBe('')
  })
})

type Entry = Parameters<ReturnType<typeof pack>['entry']>[0]

const tarOf = async (...entries: [Entry, string?][]): Promise<Buffer> => {
  const tar = pack()
  for (const [header, content] of entries) tar.entry(header, content ?? '')
  tar.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of tar) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function* slices(bytes: Buffer, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const readAll = async (bytes: Buffer, limit = 1e6): Promise<(SentFile & { content: string })[]> => {
  const seen: (SentFile & { content: string })[] = []
  await readTarFiles(slices(bytes), limit, async (file, content) => {
    const parts: Uint8Array[] = []
    for await (const chunk of content) parts.push(chunk)
    seen.push({ ...file, content: Buffer.concat(parts).toString() })
  })
  return seen
}

describe('a tar from a machine', () => {
  it('is told entry by entry, also when it is several tars in a row', async () => {
    const one = await tarOf([{ name: './a' }, 'A'], [{ name: './b', type: 'link', linkname: './a' }])
    const two = await tarOf([{ name: 'c', type: 'symlink', linkname: '/etc' }], [{ name: './d/e' }, 'E'])
    expect(await readAll(Buffer.concat([one, two]))).toMatchObject([
      { path: 'a', type: 'file', content: 'A' },
      { path: 'b', type: 'hard-link', sameAs: 'a' },
      { path: 'c', type: 'other' },
      { path: 'd/e', type: 'file', content: 'E' },
    ])
  })

  it('goes on past what nobody wants to read', async () => {
    const bytes = await tarOf([{ name: 'a' }, 'x'.repeat(5000)], [{ name: 'b' }, 'y'])
    const seen: string[] = []
    await readTarFiles(slices(bytes), 1e6, async ({ path }) => void seen.push(path))
    expect(seen).toEqual(['a', 'b'])
  })

  it('is cut off at its limit, however it is made', async () => {
    const bomb = await tarOf([{ name: 'a' }, 'x'.repeat(50_000)])
    await expect(readAll(bomb, 10_000)).rejects.toMatchObject({ code: 'too_large' })
    await expect(readAll(Buffer.alloc(50_000), 10_000)).rejects.toMatchObject({ code: 'too_large' })
  })

  it('holds no header of 8 GB in memory', async () => {
    const header = (await tarOf([{ name: 'x' }])).subarray(0, 512)
    header.write('77777777777\0', 124)
    header.write('x', 156)
    header.write('        ', 148)
    const checksum = header.reduce((total, byte) => total + byte, 0)
    header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148)
    const endless = Buffer.concat([header, Buffer.alloc(5000, 'x')])
    await expect(readAll(endless)).rejects.toThrow(/max size/)
  })

  it('is refused when it is none, or not whole', async () => {
    await expect(readAll(Buffer.alloc(2000, 'z'))).rejects.toMatchObject({ code: 'invalid' })
    const cut = (await tarOf([{ name: 'a' }, 'x'.repeat(5000)])).subarray(0, 2000)
    await expect(readAll(cut)).rejects.toMatchObject({ code: 'invalid' })
  })
})
