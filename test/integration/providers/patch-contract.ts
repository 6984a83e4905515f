import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { packDirectory } from '../../../src/files/pack-directory.ts'
import { createHarness, type Harness, type ProviderSubject } from '../../support/providers.ts'
import { exitOf } from './provider-contract.ts'

export interface PatchesOptions {
  readonly subject: ProviderSubject
  readonly skip?: string | undefined
  readonly network?: 'none' | 'full'
}

/** What every runtime that brings back patches has to do. */
export const describeWorkspacePatches = (
  name: string,
  { subject, skip, network = 'none' }: PatchesOptions,
): void => {
  describe(`the changes of a workspace, as a patch (${name})`, () => {
    beforeEach(context => {
      if (skip !== undefined) context.skip(skip)
    })
    let harness: Harness
    let source: string
    let blob: string
    beforeAll(async () => {
      if (skip !== undefined) return
      harness = await createHarness(subject)
      source = mkdtempSync(join(tmpdir(), 'deputy-source-'))
      put('src/keep.txt', 'kept\n')
      put('src/edit.txt', '1\n2\n3\n')
      put('src/same-size.txt', 'abc\n')
      put('old.txt', 'old\n')
      put('run.sh', '#!/bin/sh\n')
      put('logo.bin', Buffer.from([0, 1, 2, 3]))
      put('.gitignore', 'node_modules/\n*.log\n!keep.log\n')
      put('sub/.gitignore', 'local\n')
      put('sub/file', 'x\n')
      blob = (await harness.blobs.put(packDirectory(source), 1e8, 'upload')).sha256
    })
    afterAll(async () => {
      await harness?.dispose()
      if (source) rmSync(source, { recursive: true, force: true })
    })

    const put = (path: string, content: string | Buffer) => {
      mkdirSync(dirname(join(source, path)), { recursive: true })
      writeFileSync(join(source, path), content)
    }
    const patchOf = async (task: string, more = {}) => {
      const { outcome } = await harness.run({ task, network, workspace: { blob, patch: true }, ...more })
      const exit = exitOf(outcome)
      const parts: Uint8Array[] = []
      if (exit.patch !== null)
        for await (const chunk of harness.blobs.read(exit.patch.sha256)) parts.push(chunk)
      return { exit, text: Buffer.concat(parts).toString('utf8') }
    }

    /** A copy of the source with the patch applied by git itself. */
    const applied = (text: string): string => {
      const copy = mkdtempSync(join(tmpdir(), 'deputy-apply-'))
      execFileSync('cp', ['-a', `${source}/.`, copy])
      execFileSync('git', ['apply', '-'], {
        cwd: copy,
        input: text,
        env: { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() },
      })
      return copy
    }

    it('includes a file whose name equals a given file elsewhere', async () => {
      const files = [{ path: '/tmp/old.txt', text: 'given' }]
      const { text } = await patchOf('echo new > old.txt', { files })
      expect(text).toContain('-old\n+new\n')
    })

    it('is accepted by git and produces the same files', async () => {
      const { text, exit } = await patchOf(
        [
          'echo 4 >>src/edit.txt; printf "abd\\n" >src/same-size.txt; rm old.txt; chmod +x run.sh',
          'printf "\\0\\1\\2\\377" >logo.bin; mkdir -p deep/er; echo new >deep/er/new.txt',
          'mkdir -p node_modules/x; echo no >node_modules/x/index.js; echo no >debug.log; echo yes >keep.log',
          'echo no >sub/local; echo yes >local; ln -s /etc/passwd link; git init -q . 2>/dev/null || mkdir .git; echo no >.git/x',
        ].join('\n'),
        { files: [{ path: 'given.txt', text: 'given' }] },
      )
      expect(exit.code).toBe(0)
      const touched = [...text.matchAll(/^diff --git a\/(\S+)/gm)].map(match => match[1])
      expect(touched).toEqual([
        ...[
          'deep/er/new.txt',
          'keep.log',
          'local',
          'logo.bin',
          'old.txt',
          'run.sh',
          'src/edit.txt',
          'src/same-size.txt',
        ],
      ])
      expect(exit.skippedArtifacts).toEqual([
        { path: 'link', reason: expect.stringContaining('regular files') },
      ])
      const copy = applied(text)
      expect(readFileSync(join(copy, 'src/edit.txt'), 'utf8')).toBe('1\n2\n3\n4\n')
      expect(readFileSync(join(copy, 'src/same-size.txt'), 'utf8')).toBe('abd\n')
      expect([...readFileSync(join(copy, 'logo.bin'))]).toEqual([0, 1, 2, 255])
      expect(statSync(join(copy, 'run.sh')).mode & 0o111).not.toBe(0)
      rmSync(copy, { recursive: true, force: true })
    })

    it('follows a directory that was renamed, and names of every kind', async () => {
      const names = ['sp ace', 'tab\there', 'quo"te\\', 'new\nline', 'ünï', '-dash', '* ?', 'end ']
      const quoted = names.map(one => `'./${one}'`).join(' ')
      const { text, exit } = await patchOf(`mv src lib; for f in ${quoted}; do echo "in $f" > "$f"; done`)
      expect(exit.code).toBe(0)
      const copy = applied(text)
      expect(readFileSync(join(copy, 'lib/keep.txt'), 'utf8')).toBe('kept\n')
      expect(existsSync(join(copy, 'src'))).toBe(false)
      for (const one of names) expect(readFileSync(join(copy, one), 'utf8')).toBe(`in ./${one}\n`)
      rmSync(copy, { recursive: true, force: true })
    })

    it('is absent when nothing changed', async () => {
      expect((await patchOf('cat src/keep.txt; touch src/keep.txt')).exit.patch).toBeNull()
    })

    it('is returned after a failure, with artifacts', async () => {
      const { exit, text } = await patchOf('echo more >>src/edit.txt; exit 3', {
        artifacts: ['src/edit.txt'],
      })
      expect(exit).toMatchObject({ code: 3, artifacts: [{ path: 'src/edit.txt' }] })
      expect(text).toContain('+more')
    })

    it('is returned after a timeout', async () => {
      const { exit, text } = await patchOf('echo more >>src/edit.txt; sleep 60', { timeout: 3 })
      expect(exit).toMatchObject({ stopped: 'timeout' })
      expect(text).toContain('+more')
    })

    it('is left out, with the reason, when it would be too large', async () => {
      const { exit } = await patchOf('head -c 20000000 /dev/urandom >big.bin')
      expect(exit.patch).toBeNull()
      expect(exit.skippedArtifacts).toEqual([{ path: '.', reason: expect.stringContaining('no patch') }])
    })

    it('contains every valid name, and reports what is skipped', async () => {
      const names = [
        'a b',
        "it's",
        'new\nline',
        '-rf',
        '--checkpoint-action=exec=sh',
        'ünï',
        '\\134',
        '*',
        '"q"',
      ]
      const { exit, text } = await patchOf(
        [
          ...names.map(name => `echo ok >'${name.replaceAll("'", `'\\''`)}'`),
          'echo bad >"$(printf "not-utf8-\\377")"; ln -- -rf hard; mkfifo pipe; rm src/keep.txt; ln -s edit.txt src/keep.txt',
        ].join('\n'),
      )
      expect(exit.skippedArtifacts).toEqual(
        expect.arrayContaining([
          { path: 'pipe', reason: expect.stringContaining('regular files') },
          { path: 'src/keep.txt', reason: expect.stringContaining('only deletes') },
          { path: '.', reason: expect.stringContaining('1 files whose names are not valid UTF-8') },
        ]),
      )
      const copy = applied(text)
      for (const name of [...names, 'hard']) expect(readFileSync(join(copy, name), 'utf8')).toBe('ok\n')
      expect(existsSync(join(copy, 'src/keep.txt'))).toBe(false)
      rmSync(copy, { recursive: true, force: true })
    })

    it('works with a gzipped tar, and ignores unchanged links', async () => {
      symlinkSync('src/keep.txt', join(source, 'way'))
      const packed: Uint8Array[] = []
      for await (const chunk of packDirectory(source)) packed.push(chunk)
      rmSync(join(source, 'way'))
      const zipped = await harness.blobs.put(once(gzipSync(Buffer.concat(packed))), 1e8, 'upload')
      const { exit, text } = await patchOf('cat way; echo 4 >>src/edit.txt', {
        workspace: { blob: zipped.sha256, patch: true },
      })
      expect(exit).toMatchObject({ code: 0, skippedArtifacts: [] })
      expect([...text.matchAll(/^diff --git a\/(\S+)/gm)].map(match => match[1])).toEqual(['src/edit.txt'])
    })

    it('contains all files when the workspace started empty', async () => {
      const { text } = await patchOf('echo x >new.txt', { workspace: { patch: true } })
      expect(text).toContain('new file mode 100644')
    })
  })
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}
