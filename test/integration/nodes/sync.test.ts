import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { packDirectory } from '../../../src/files/pack-directory.ts'
import { tarSource } from '../../../src/files/tree-source.ts'
import { fillWorkspace, unpackInto } from '../../../src/nodes/sync/node-workspace.ts'
import { pushTree } from '../../../src/nodes/sync/push-tree.ts'
import { listFiles } from '../../../src/runner/file-list.ts'
import { readFiles } from '../../../src/runner/read-files.ts'
import { channelTo, labCluster, runOn } from '../../support/labcluster.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()
const sourceOf = (directory: string) => tarSource(() => packDirectory(directory))

describe.skipIf(missing !== undefined)(
  `a directory on a node${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let lab: SshLab
    let cluster: ReturnType<typeof labCluster>
    let directory: string
    let next = 0
    const signal = new AbortController().signal

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 1 })
      cluster = labCluster(lab)
    })
    afterAll(async () => {
      cluster?.dispose()
      await lab?.close()
    })
    beforeEach(() => {
      directory = mkdtempSync(join(tmpdir(), 'dpws'))
      mkdirSync(join(directory, 'src/deep'), { recursive: true })
      mkdirSync(join(directory, 'target'))
      mkdirSync(join(directory, '.git'))
      writeFileSync(join(directory, '.git/config'), 'secret')
      writeFileSync(join(directory, '.gitignore'), 'target/\n*.log\n')
      writeFileSync(join(directory, 'target/big'), 'x'.repeat(1000))
      writeFileSync(join(directory, 'a.log'), 'log')
      writeFileSync(join(directory, 'src/a.txt'), 'one\ntwo\nthree\n')
      writeFileSync(join(directory, "src/it's $x.txt"), 'odd name\n')
      writeFileSync(join(directory, 'src/deep/run.sh'), '#!/bin/sh\necho ran\n')
      chmodSync(join(directory, 'src/deep/run.sh'), 0o755)
      symlinkSync('a.txt', join(directory, 'src/link'))
    })
    afterEach(() => rmSync(directory, { recursive: true, force: true }))

    const request = async () => ({
      ssh: cluster.ssh,
      owner: 'test',
      target: await cluster.target(cluster.find('n1'), signal),
      signal,
    })
    const push = async (key: string) => pushTree({ ...(await request()), key, source: sourceOf(directory) })
    const inHome = (path: string): string =>
      lab.nodes[0]!.inside(`cd ${lab.nodes[0]!.home}/.cache/deputy/test && ${path}`)

    it('has what belongs to it, and nothing that .gitignore or git keeps apart', async () => {
      const pushed = await push('k1')
      expect(pushed.sent).toBe(7)
      const listed = inHome('cd trees/k1/tree && find . | sort').trim().split('\n')
      expect(listed).toEqual([
        '.',
        './.gitignore',
        './src',
        './src/a.txt',
        './src/deep',
        './src/deep/run.sh',
        "./src/it's $x.txt",
        './src/link',
      ])
      expect(inHome('cat trees/k1/tree/src/link; trees/k1/tree/src/deep/run.sh')).toBe(
        'one\ntwo\nthree\nran\n',
      )
    })

    it('gets only what changed', async () => {
      await push('k2')
      expect(await push('k2')).toMatchObject({ sent: 0, deleted: 0, bytes: 0 })
      writeFileSync(join(directory, 'src/a.txt'), 'changed\n')
      rmSync(join(directory, "src/it's $x.txt"))
      expect(await push('k2')).toMatchObject({ sent: 1, deleted: 1, bytes: 8 })
      expect(inHome('cat trees/k2/tree/src/a.txt; ls trees/k2/tree/src')).toBe('changed\na.txt\ndeep\nlink\n')
    })

    it('does not get a file again that was only touched, and gets one whose mode changed', async () => {
      await push('k3')
      utimesSync(join(directory, 'src/a.txt'), new Date(), new Date(Date.now() + 5000))
      expect((await push('k3')).sent).toBe(0)
      chmodSync(join(directory, 'src/a.txt'), 0o755)
      expect((await push('k3')).sent).toBe(1)
    })

    it('follows a file that became a directory, and back', async () => {
      await push('k4')
      rmSync(join(directory, 'src/a.txt'))
      mkdirSync(join(directory, 'src/a.txt'))
      writeFileSync(join(directory, 'src/a.txt/inner'), 'x')
      await push('k4')
      expect(inHome('cat trees/k4/tree/src/a.txt/inner')).toBe('x')
      rmSync(join(directory, 'src/a.txt'), { recursive: true })
      writeFileSync(join(directory, 'src/a.txt'), 'file again')
      await push('k4')
      expect(inHome('cat trees/k4/tree/src/a.txt')).toBe('file again')
    })

    it('is brought up to date when the list of its files is longer than an answer may be', async () => {
      await push('long')
      inHome(
        'f=trees/long/manifest; while read -r l; do [ -n "$l" ] && { printf "%s" "$l"; head -c 2000000 /dev/zero | tr "\\0" " "; echo; }; done < $f > $f.2; mv $f.2 $f',
      )
      expect(Number(inHome('wc -c < trees/long/manifest'))).toBeGreaterThan(10_000_000)
      rmSync(join(directory, "src/it's $x.txt"))
      expect(await push('long')).toMatchObject({ sent: 0, deleted: 1 })
      expect(inHome('ls trees/long/tree/src')).toBe('a.txt\ndeep\nlink\n')
    })

    it('is copied whole, and without what was there, when the list of its files is spoilt', async () => {
      await push('spoilt')
      inHome('echo "{half a li" >> trees/spoilt/manifest; echo stale > trees/spoilt/tree/src/stale')
      rmSync(join(directory, "src/it's $x.txt"))
      expect(await push('spoilt')).toMatchObject({ sent: 6 })
      expect(inHome('ls trees/spoilt/tree/src')).toBe('a.txt\ndeep\nlink\n')
    })

    it('does not stay on the node for ever', async () => {
      const limits = { days: 14, kibibytes: 1_000_000 }
      const pushed = async (key: string, more = limits) =>
        pushTree({ ...(await request()), key, source: sourceOf(directory), limits: more })
      const there = () => inHome('cd trees && ls -d keep-* | tr "\\n" " "').trim()
      await pushed('keep-old')
      await pushed('keep-used')
      inHome('touch -d "20 days ago" trees/keep-old/used; touch -d "10 days ago" trees/keep-used/used')
      await pushed('keep-new')
      await waitFor(() => there() === 'keep-new keep-used', there)
      // Too much together: the one that was used longest ago goes, never one that may be in use.
      await pushed('keep-last', { days: 14, kibibytes: 1 })
      await waitFor(() => there() === 'keep-last keep-new', there)
    })

    it('cannot be copied to a full disk, and the reason is reported, however late it is noticed', async () => {
      await push('free')
      inHome('touch trees/taken')
      const source = sourceOf(directory)
      const pack: typeof source.pack = into => waitFor(() => into.destroyed)
      const pushed = pushTree({ ...(await request()), key: 'taken', source: { ...source, pack } })
      await expect(pushed).rejects.toMatchObject({
        ...{ code: 'unavailable', retryable: true },
        message: expect.stringMatching(/Cannot copy the workspace to node n1: .*trees\/taken/),
      })
    })

    it('is never half an answer', async () => {
      const { ssh, target } = await request()
      const script = 'head -c 9000000 /dev/zero\n'
      await expect(ssh.run({ target, signal, script })).rejects.toThrow('sent more than 8 MiB')
    })

    it('is the same from a gzipped tar', async () => {
      const source = tarSource(() => Readable.from(packDirectory(directory)).pipe(createGzip()))
      const first = await pushTree({ ...(await request()), key: 'k5', source })
      expect(first.sent).toBe(7)
      expect(inHome('cat "trees/k5/tree/src/link"; trees/k5/tree/src/deep/run.sh')).toBe(
        'one\ntwo\nthree\nran\n',
      )
      writeFileSync(join(directory, 'src/new.txt'), 'new')
      const second = await pushTree({
        ...(await request()),
        key: 'k5',
        source: sourceOf(directory),
      })
      expect(second).toMatchObject({ sent: 1, deleted: 0, bytes: 3 })
    })

    it('gives each command its own copy, and reports what it changed', async () => {
      await push('k6')
      const id = `w${next++}`
      const where = { ...(await request()), id }
      await fillWorkspace({ ...where, key: 'k6' })
      await unpackInto({ ...where, archive: tarOf('extra.txt', 'given\n') })
      const command = `cat extra.txt; echo four >> src/a.txt; rm src/deep/run.sh; echo new > "src/n w.txt"; printf '\\0\\1' > bin; touch -d '2001-01-01' src/a.txt; mkdir target; echo no > target/x`
      const { end, stdout, stderr } = await runOn(cluster, 'n1', { id, command })
      expect(end, stderr).toMatchObject({ kind: 'exit', code: 0 })
      expect(stdout).toBe('given\n')
      expect(inHome('cat trees/k6/tree/src/a.txt')).toBe('one\ntwo\nthree\n')

      const channel = await channelTo(cluster, 'n1')
      const listing = await listFiles({ channel, workspace: id, signal })
      expect(listing.files.map(file => file.path)).not.toContain('src/deep/run.sh')
      expect(listing.files).toContainEqual({
        path: 'src/a.txt',
        type: 'file',
        size: 19,
        mode: 0o644,
        modified: expect.any(Number),
      })

      const contents = new Map<string, Buffer>()
      const paths = ['src/a.txt', 'src/n w.txt', 'bin']
      await readFiles({ channel, workspace: id, paths, limit: 1e6, signal }, async ({ path }, content) => {
        const chunks: Uint8Array[] = []
        for await (const chunk of content) chunks.push(chunk)
        contents.set(path, Buffer.concat(chunks))
      })
      expect(contents.get('src/a.txt')?.toString()).toBe('one\ntwo\nthree\nfour\n')
      expect(contents.get('src/n w.txt')?.toString()).toBe('new\n')
      expect([...contents.get('bin')!]).toEqual([0, 1])
    })

    it('carries and deletes names that no line can hold', async () => {
      const odd = [
        'tab\there',
        'new\nline',
        ' lead',
        'trail ',
        '-rf',
        'quo"te\\',
        'ünïcode',
        '*',
        '$(touch x)',
      ]
      for (const name of odd) writeFileSync(join(directory, name), name)
      await push('k7')
      const list = (): string[] =>
        inHome('cd trees/k7/tree && find . -maxdepth 1 -type f -print0').split('\0')
      for (const name of odd) expect(list()).toContain(`./${name}`)
      for (const name of odd) rmSync(join(directory, name))
      expect(await push('k7')).toMatchObject({ sent: 0, deleted: odd.length })
      expect(list()).toEqual(['./.gitignore', ''])
    })

    async function* tarOf(name: string, content: string): AsyncGenerator<Buffer> {
      const { pack } = await import('tar-stream')
      const tar = pack()
      tar.entry({ name }, content)
      tar.finalize()
      for await (const chunk of tar) yield chunk as Buffer
    }
  },
)
