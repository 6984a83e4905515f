import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseListing, readListing } from '../../../src/files/file-listing.ts'

describe('the listing of a workspace', () => {
  const list = (...chunks: (string | Buffer)[]) => {
    const stream = new PassThrough()
    const result = readListing(stream, AbortSignal.timeout(30_000))
    for (const chunk of chunks) stream.write(chunk)
    stream.end()
    return result
  }

  it('is read up to its end', async () => {
    const { files } = await list('f 5 644 1700000000.5 a/b\0l 3 777 1 link\0p 0 ', '600 1 pipe\0\0and more')
    expect(files).toEqual([
      { path: 'a/b', type: 'file', size: 5, mode: 0o644, modified: 1700000000 },
      { path: 'link', type: 'link', size: 3, mode: 0o777, modified: 1 },
      { path: 'pipe', type: 'other', size: 0, mode: 0o600, modified: 1 },
    ])
  })

  it('drops names outside the workspace and malformed records', async () => {
    const bad = [
      'f 5 644 1 ../x',
      'f 5 644 1 /etc/passwd',
      'f 5 644 1 a/../b',
      'f 5 644 1 a//b',
      'f x 644 1 y',
      'f 5 644 1 ',
      'junk',
      'f 5 644 1 ./x',
    ]
    expect((await list(`${bad.join('\0')}\0\0`)).files).toEqual([])
    expect(
      (await list(Buffer.concat([Buffer.from('f 1 644 1 '), Buffer.from([0xff, 0xfe, 0, 0])]))).files,
    ).toEqual([])
  })

  it('is truncated when it is too long, but keeps wanted files and the next answer', async () => {
    const stream = new PassThrough()
    const result = readListing(stream, AbortSignal.timeout(60_000), path => path === 'wanted')
    for (let i = 0; i < 250; i++)
      stream.write(Array.from({ length: 1000 }, (_, j) => `f 1 644 1 ${i}/${j}\0`).join(''))
    stream.write('f 1 644 1 wanted\0f 1 644 1 unwanted\0\0')
    const { files, truncated } = await result
    expect({ truncated, count: files.length, last: files.at(-1)?.path }).toEqual({
      truncated: true,
      count: 200_001,
      last: 'wanted',
    })
    stream.write('the next answer')
    expect(String(stream.read())).toBe('the next answer')
  })

  it('fails when the machine ends in the middle', async () => {
    await expect(list('f 5 644 1 a')).rejects.toThrow('ended while')
  })

  it('survives any bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async bytes => {
        const result = await list(Buffer.from(bytes), '\0\0')
        for (const file of result.files) expect(file.path.split('/')).not.toContain('..')
      }),
    )
  })
})

describe('the listing of a workspace that is received as a whole', () => {
  it('is read as find writes it, with fractions of seconds or without', () => {
    const list = 'f 12 644 1700000000.5000000000 a b\0l 3 777 17 link\0p 0 600 -5.0 new\nline\0\0'
    expect(parseListing(Buffer.from(list))).toEqual({
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
    expect(parseListing(Buffer.from('f 1 644 1 a\0f 1 644 1 b'))).toMatchObject({
      files: [{ path: 'a' }],
      truncated: true,
    })
    expect(parseListing(Buffer.alloc(0))).toMatchObject({ files: [], truncated: true })
  })

  it('leaves out ways to elsewhere and what is no record, and counts names that are no UTF-8', () => {
    const records = ['f 1 644 1 ../x', 'f 1 644 1 /etc/passwd', 'f 1 644 1 a/../../x', 'f -1 644 1 x', 'junk']
    const bytes = Buffer.concat([
      Buffer.from(records.map(record => `${record}\0`).join('')),
      Buffer.from('f 1 644 1 bad\xff\0', 'latin1'),
      Buffer.from('\0'),
    ])
    expect(parseListing(bytes)).toEqual({ files: [], truncated: false, unnamed: 1 })
  })

  it('survives any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
        for (const { path } of parseListing(Buffer.from(bytes)).files) expect(path).not.toMatch(/^\/|\.\./)
      }),
    )
  })
})
