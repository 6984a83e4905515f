import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pack } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listing } from '../../../../src/files/file-listing.ts'
import { patchTasks } from '../../../../src/files/patch-tasks.ts'
import { type ManifestInput, parseManifest } from '../../../../src/jobs/manifest.ts'
import type { Blobs } from '../../../../src/ports.ts'
import { createVmFileChannel } from '../../../../src/providers/proxmox/vm-file-channel.ts'
import { type CollectionOptions, createCollection } from '../../../../src/runner/collect.ts'
import { blobsWithoutStore } from '../../../support/blobs.ts'

let directory: string
let blobs: Blobs
let base: string
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-collection-'))
  blobs = blobsWithoutStore(join(directory, 'blobs'))
  base = (
    await blobs.put(tarOf({ 'keep.txt': 'kept\n', 'edit.txt': 'old\n', 'run.sh': 'x\n' }), 1e6, 'upload')
  ).sha256
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

type Content = string | { link: string } | { hard: string }

async function* tarOf(files: Record<string, Content>): AsyncGenerator<Uint8Array> {
  const tar = pack()
  for (const [name, content] of Object.entries(files)) {
    const mtime = new Date(1000)
    if (typeof content === 'string') tar.entry({ name, mtime }, content)
    else if ('link' in content) tar.entry({ name, mtime, type: 'symlink', linkname: content.link })
    else tar.entry({ name, mtime, type: 'link', linkname: content.hard })
  }
  tar.finalize()
  for await (const chunk of tar) yield chunk as Buffer
}

/** A tar whose way is cut in the middle, once what was sent before has been taken. */
async function* cutAfter(
  source: AsyncIterable<Uint8Array>,
  bytes: number,
  taken: () => boolean,
): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const chunk of source) {
    yield chunk.subarray(0, left)
    left -= chunk.length
    if (left > 0) continue
    for (let waited = 0; !taken() && waited < 10_000; waited += 5)
      await new Promise(resolve => setTimeout(resolve, 5))
    throw new Error('the sender went away')
  }
}

const listOf = (files: Record<string, number | [size: number, mode: number]>, more = {}): Listing => ({
  files: Object.entries(files).map(([path, what]) => {
    const [size, mode] = typeof what === 'number' ? [what, 0o644] : what
    return { path, type: 'file' as const, size, mode, modified: 5 }
  }),
  truncated: false,
  unnamed: 0,
  ...more,
})

const encode = ({ files, truncated }: Listing): Buffer =>
  Buffer.from(
    `${files.map(({ size, mode, modified, path }) => `f ${size} ${mode.toString(8)} ${modified} ${path}\0`).join('')}${truncated ? '' : '\0'}`,
  )

/** A machine that sends its list and its files. */
const collect = (manifest: Partial<ManifestInput>, more: Partial<CollectionOptions> = {}) => {
  const collection = createCollection({
    jobId: 'job',
    manifest: parseManifest({ task: 'x', ...manifest }),
    blobs,
    keep: { artifactFiles: 10, artifactBytes: 100_000, patchBytes: 20_000 },
    tasks: patchTasks,
    startedAt: () => 1_000_000,
    ...more,
  })
  let isStored = false
  const store = async () => {
    isStored = true
  }
  const channel = createVmFileChannel({ collection, complete: false, store, onBytes: () => {} })
  const plain = (names: readonly string[]) => names.map(name => name.replace(/^\.\//, ''))
  return {
    list: async (list: Listing) => plain(await channel.files(encode(list))),
    receive: async (tar: AsyncIterable<Uint8Array>) => plain(await channel.receive(tar)),
    isStored: () => isStored,
    result: () => {
      const { skippedArtifacts: skipped, ...rest } = collection.result()
      return { ...rest, skipped }
    },
  }
}

const read = async (sha256: string): Promise<string> => {
  const parts: Uint8Array[] = []
  for await (const chunk of blobs.read(sha256)) parts.push(chunk)
  return Buffer.concat(parts).toString()
}

const stored = () => readdirSync(join(directory, 'blobs'), { recursive: true }).length

describe('the files of a machine', () => {
  it('are asked for in steps: artifacts, what is ignored, what may have changed', async () => {
    const collection = collect({ artifacts: ['out.txt'], workspace: { blob: base, patch: true } })
    const list = listOf({ 'out.txt': 4, '.gitignore': 6, 'edit.txt': 4, 'a.log': 1, 'keep.txt': 5 })
    expect(await collection.list(list)).toEqual(['out.txt'])
    expect(await collection.receive(tarOf({ './out.txt': 'out\n' }))).toEqual(['.gitignore'])
    expect(await collection.receive(tarOf({ './.gitignore': '*.log\n' }))).toEqual(['edit.txt', 'keep.txt'])
    expect(await collection.receive(tarOf({ './edit.txt': 'new\n', './keep.txt': 'kept\n' }))).toEqual([])
    expect(collection.isStored()).toBe(true)
    const { artifacts, patch, skipped } = collection.result()
    expect(artifacts).toEqual([
      { path: 'out.txt', size: 4, sha256: createHash('sha256').update('out\n').digest('hex') },
    ])
    expect(skipped).toEqual([])
    const text = await read(patch!.sha256)
    const touched = [...text.matchAll(/^diff --git a\/(\S+)/gm)].map(match => match[1])
    expect(touched).toEqual(['.gitignore', 'edit.txt', 'out.txt', 'run.sh'])
    expect(text).toContain('-old\n+new\n')
    expect(text).toContain('deleted file mode 100644')
  })

  it('that came are not asked for again after a cut', async () => {
    const collection = collect({ artifacts: ['*'] })
    const list = listOf({ a: 2000, b: 2000, c: 2000 })
    const contents = { a: 'a'.repeat(2000), b: 'b'.repeat(2000), c: 'c'.repeat(2000) }
    expect(await collection.list(list)).toEqual(['a', 'b', 'c'])
    await expect(
      collection.receive(cutAfter(tarOf(contents), 6000, () => collection.result().artifacts.length === 2)),
    ).rejects.toThrow()
    expect(await collection.list(list)).toEqual(['c'])
    expect(collection.result().skipped).toEqual([{ path: 'c', reason: 'it did not arrive' }])
    expect(await collection.receive(tarOf({ c: contents.c }))).toEqual([])
    expect(collection.result()).toMatchObject({
      artifacts: [{ path: 'a' }, { path: 'b' }, { path: 'c' }],
      skipped: [],
    })
  })

  it('are asked for a little at a time', async () => {
    const collection = collect({ artifacts: ['*'] }, { batchBytes: 10 })
    expect(await collection.list(listOf({ a: 6, b: 6, c: 4 }))).toEqual(['a'])
    expect(await collection.receive(tarOf({ a: 'aaaaaa' }))).toEqual(['b', 'c'])
  })

  it('count only when they were asked for, as what they were said to be', async () => {
    const before = stored()
    const collection = collect({ artifacts: ['*'] })
    expect(await collection.list(listOf({ a: 3, b: 3, c: 3, d: 3, e: 3 }))).toHaveLength(5)
    await collection.receive(
      tarOf({
        '../../escape': 'bad',
        '/etc/cron.d/x': 'bad',
        'not-asked': 'bad',
        a: { link: '/etc/passwd' },
        b: 'grown',
        c: { hard: '/etc/passwd' },
        d: 'ok1',
        './d': 'no2',
      }),
    )
    const { artifacts, skipped } = collection.result()
    expect(artifacts.map(file => file.path)).toEqual(['d'])
    expect(await read(artifacts[0]!.sha256)).toBe('ok1')
    expect(skipped).toEqual([
      { path: 'a', reason: expect.stringContaining('no longer a regular file') },
      { path: 'b', reason: expect.stringContaining('grew') },
      { path: 'c', reason: expect.stringContaining('was not received') },
      { path: 'e', reason: expect.stringContaining('could not be read') },
    ])
    // The one good file and its folder.
    expect(stored() - before).toBeLessThanOrEqual(3)
    expect(await collection.receive(tarOf({ e: 'abc' }))).toEqual([])
    expect(collection.result().artifacts).toHaveLength(1)
  })

  it('that nobody asked for are refused as a flood, and the reason is told', async () => {
    const collection = collect({ artifacts: ['*'], workspace: { blob: base, patch: true } })
    await collection.list(listOf({ a: 3 }))
    const flood = { flood: 'x'.repeat(200_000), a: 'abc' }
    await expect(collection.receive(tarOf(flood))).rejects.toMatchObject({ code: 'too_large' })
    const { artifacts, skipped, patch } = collection.result()
    expect({ artifacts, patch }).toEqual({ artifacts: [], patch: null })
    expect(skipped).toEqual([
      { path: 'a', reason: expect.stringContaining('more than') },
      { path: '.', reason: expect.stringContaining('no patch') },
    ])
  })

  it('with two names are both there', async () => {
    const collection = collect({ artifacts: ['one', 'two'], workspace: { patch: true } })
    expect(await collection.list(listOf({ one: 1, two: 1, three: 1, four: 1 }))).toEqual(['one', 'two'])
    expect(await collection.receive(tarOf({ one: '1', two: { hard: './one' } }))).toEqual(['three', 'four'])
    await collection.receive(tarOf({ three: '3', four: { hard: 'three' } }))
    const { artifacts, patch } = collection.result()
    expect(artifacts).toHaveLength(2)
    expect(artifacts[0]!.sha256).toBe(artifacts[1]!.sha256)
    expect((await read(patch!.sha256)).match(/^diff/gm)).toHaveLength(4)
  })

  it('change no mode without it showing', async () => {
    const collection = collect({ workspace: { blob: base, patch: true } })
    const list = listOf({ 'keep.txt': 5, 'edit.txt': 4, 'run.sh': [2, 0o755] })
    await collection.list(list)
    await collection.receive(tarOf({ 'keep.txt': 'kept\n', 'edit.txt': 'old\n', 'run.sh': 'x\n' }))
    const text = await read(collection.result().patch!.sha256)
    expect(text).toBe('diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n')
  })

  it('are not taken for deleted when the list is not whole', async () => {
    const collection = collect({ workspace: { blob: base, patch: true } })
    await collection.list(listOf({ 'edit.txt': 4 }, { truncated: true }))
    await collection.receive(tarOf({ 'edit.txt': 'new\n' }))
    const { patch, skipped } = collection.result()
    expect(await read(patch!.sha256)).not.toContain('deleted')
    expect(skipped).toEqual([
      { path: '.', reason: expect.stringContaining('deletions are not in the patch') },
    ])
  })

  it('that would make too large a patch are not even asked for', async () => {
    const collection = collect({ workspace: { blob: base, patch: true } })
    expect(await collection.list(listOf({ big: 50_000 }))).toEqual([])
    expect(collection.result()).toMatchObject({
      patch: null,
      skipped: [{ path: '.', reason: expect.stringContaining('no patch: the changed files have') }],
    })
  })

  it('may look changed and be large without being held', async () => {
    const content = 'y'.repeat(90_000)
    const big = (await blobs.put(tarOf({ big: content }), 1e6, 'upload')).sha256
    const collection = collect({ workspace: { blob: big, patch: true } })
    expect(await collection.list(listOf({ big: 90_000, new: 2 }))).toEqual(['big', 'new'])
    await collection.receive(tarOf({ big: content, new: 'n\n' }))
    expect(await read(collection.result().patch!.sha256)).toMatch(/^diff --git a\/new b\/new\nnew file/)
    const other = collect({ workspace: { blob: big, patch: true } })
    await other.list(listOf({ big: 90_000 }))
    await other.receive(tarOf({ big: content.replaceAll('y', 'z') }))
    expect(other.result()).toMatchObject({
      patch: null,
      skipped: [{ reason: expect.stringContaining('no patch') }],
    })
  })

  it('that two requests bring at once are taken one after the other', async () => {
    const collection = collect({ artifacts: ['*'] })
    await collection.list(listOf({ a: 1 }))
    await Promise.all([collection.receive(tarOf({ a: '1' })), collection.receive(tarOf({ a: '2' }))])
    expect(await read(collection.result().artifacts[0]!.sha256)).toBe('1')
  })

  it('are reported as missing when the machine never told of them', () => {
    const silent = collect({ artifacts: ['*'] }).result()
    expect(silent).toMatchObject({
      artifacts: [],
      skipped: [{ path: '.', reason: expect.stringContaining('did not list') }],
    })
    expect(collect({}).result()).toEqual({ artifacts: [], skipped: [], patch: null })
  })
})
