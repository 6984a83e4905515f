import { pack } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { readTarFiles, type SentFile } from '../../../src/runner/tar-files.ts'

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
