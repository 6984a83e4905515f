import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { readListing } from '../../../src/runtimes/local/file-listing.ts'
import { limitsHit } from '../../../src/runtimes/local/limits-hit.ts'
import { createLineReader } from '../../../src/runtimes/local/line-reader.ts'
import { createProgressScanner } from '../../../src/runtimes/local/progress-scanner.ts'
import { selectArtifacts } from '../../../src/runtimes/local/select-artifacts.ts'
import { bwrapCall } from '../../../src/runtimes/sandbox/bwrap.ts'
import { fitsSandbox } from '../../../src/runtimes/sandbox/fits-sandbox.ts'
import { uidRange } from '../../../src/runtimes/sandbox/sandbox-uids.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 512 * MIB, disk: 64 * MIB, cpu: 1, processes: 64 }

describe('the listing of a workspace', () => {
  const list = (...chunks: (string | Buffer)[]) => {
    const stream = new PassThrough()
    const result = readListing(stream, AbortSignal.timeout(5000))
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

  it('believes no name that leads out, and no broken record', async () => {
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

  it('is cut when it is too long, but keeps what is wanted and leaves what follows', async () => {
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

describe('choosing artifacts', () => {
  const file = (path: string, size = 1) => ({ path, size, type: 'file' as const, mode: 0o644 })

  it('keeps to counts and sizes, and says what it leaves', () => {
    const listing = { files: [file('a', 5), file('b', 6), file('c', 5), file('d', 1)], truncated: false }
    const chosen = selectArtifacts(listing, ['*'], { files: 2, bytes: 10 })
    expect(chosen.wanted.map(({ path }) => path)).toEqual(['a', 'c'])
    expect(chosen.skipped).toEqual([
      { path: 'b', reason: expect.stringContaining('exceed 10 B') },
      { path: 'd', reason: 'more than 2 files match' },
    ])
  })

  it('leaves out the files of git, whatever the file system would call them', () => {
    const hostile = [
      '.git/config',
      'sub/.GIT/commondir',
      '.git./HEAD',
      'git~1/x',
      '.git::$INDEX_ALLOCATION/x',
    ]
    const harmless = ['.gitignore', '.github/x', 'repo.git/config', 'a']
    const listing = { files: [...hostile, ...harmless].map(path => file(path)), truncated: false }
    const chosen = selectArtifacts(listing, ['**'], { files: 20, bytes: 100 })
    expect(chosen.wanted.map(({ path }) => path)).toEqual([...harmless].sort())
    expect(chosen.skipped).toEqual([
      { path: '.git', reason: expect.stringContaining("5 of git's own files") },
    ])
  })

  it('tells when the list itself was cut', () => {
    expect(
      selectArtifacts({ files: [], truncated: true }, ['*'], { files: 1, bytes: 1 }).skipped,
    ).toHaveLength(1)
  })
})

describe('limits in words', () => {
  const evidence = {
    limits: LIMITS,
    timeoutSeconds: 5,
    stopped: null,
    oomKills: 0,
    refusedForks: 0,
    disk: null,
    printedErrors: new Set<never>(),
  }

  it('names each limit that was hit, and nothing else', () => {
    expect(limitsHit(evidence)).toEqual([])
    expect(limitsHit({ ...evidence, stopped: 'timeout' })).toEqual(['time: it ran longer than 5 s'])
    const disk = { bytes: 64 * MIB, full: true, outOfFiles: false }
    expect(limitsHit({ ...evidence, oomKills: 1, refusedForks: 2, disk })).toEqual([
      expect.stringMatching(/^memory: .*512\.0 MB/),
      'processes: it wanted more than 64 at once',
      'disk: it wrote more than 64.0 MB',
    ])
    expect(limitsHit({ ...evidence, disk: { bytes: 0, full: false, outOfFiles: true } })).toEqual([
      'disk: it made more files than fit into 64.0 MB',
    ])
  })
})

describe('lines and progress', () => {
  it('are found however the stream is cut', () => {
    const text = Buffer.from(
      'a\n::progress:: one\nx ::progress:: no\n::progress::two\n\n::progress:: ünï\u0007\n',
    )
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), borders => {
        const at = [0, ...borders.sort((a, b) => a - b), text.length]
        const progress: string[] = []
        const lines: string[] = []
        const scan = createProgressScanner(line => progress.push(line))
        const read = createLineReader(1000, line => lines.push(line))
        for (const [index, end] of at.slice(1).entries()) {
          scan(text.subarray(at[index]!, end))
          read(text.subarray(at[index]!, end))
        }
        expect(progress).toEqual(['one', 'two', 'ünï'])
        expect(lines.map(line => `${line}\n`).join('')).toBe(text.toString())
      }),
    )
  })

  it('are bounded', () => {
    const lines: string[] = []
    const read = createLineReader(10, line => lines.push(line))
    for (let index = 0; index < 100; index++) read(Buffer.alloc(1000, 97))
    read(Buffer.from('\nnext\n'))
    expect(lines).toEqual(['a'.repeat(10), 'next'])
  })
})

describe('what bubblewrap is told', () => {
  const call = bwrapCall({
    mounts: [{ kind: 'text', text: 'x', target: '/etc/x' }],
    topMounts: [],
    limits: LIMITS,
    hostNetwork: false,
    disableUserns: true,
    diskDir: null,
    firstFd: 6,
    seccomp: Buffer.from('bpf'),
  })
  const args = call.fdContents[0]!.toString().split('\0')

  it('closes the writable root last', () => {
    const binds = args.lastIndexOf('--tmpfs')
    expect(args.lastIndexOf('--remount-ro')).toBeGreaterThan(binds)
    expect(args.slice(args.lastIndexOf('--remount-ro'), args.lastIndexOf('--remount-ro') + 2)).toEqual([
      '--remount-ro',
      '/',
    ])
  })

  it('keeps everything from the command line', () => {
    expect(call.args).toEqual(['--args', '6'])
    expect(args).toContain('--clearenv')
    expect(call.fdContents[Number(args[args.indexOf('--ro-bind-data') + 1]) - 6]!.toString()).toBe('x')
    expect(call.fdContents[Number(args[args.indexOf('--seccomp') + 1]) - 6]!.toString()).toBe('bpf')
  })
})

describe('where a job fits', () => {
  const fits = (input: Record<string, unknown>) => fitsSandbox(parseManifest({ task: 'x', ...input }), LIMITS)

  it('says why it does not', () => {
    expect(fits({})).toEqual({ ok: true })
    for (const [input, reason] of [
      [{ vmTemplate: 'debian' }, 'virtual machine'],
      [{ requires: { os: 'windows' } }, 'windows'],
      [{ requires: { arch: 's390x' } }, 's390x'],
      [{ requires: { capabilities: ['gpu'] } }, 'gpu'],
      [{ requires: { node: 'elsewhere' } }, 'elsewhere'],
      [{ resources: { memory: '900T' } }, 'memory'],
      [{ resources: { cpu: 32 } }, 'processors'],
    ] as const)
      expect(fits(input)).toEqual({ ok: false, reason: expect.stringContaining(reason) })
  })
})

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
