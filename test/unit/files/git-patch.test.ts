import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyPatch } from '../../../src/files/apply-patch.ts'
import { gitPatch, type PatchedFile, type PatchedState } from '../../../src/files/git-patch.ts'

const hasGit = (() => {
  try {
    execFileSync('git', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

const state = (content: string | Buffer, executable = false): PatchedState => ({
  content: Buffer.from(content),
  executable,
})

const APPLIERS: Record<string, (text: Buffer, dir: string) => unknown> = {
  git: (text, dir) =>
    execFileSync('git', ['apply', '--whitespace=nowarn', '-'], {
      cwd: dir,
      input: text,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { ...process.env, GIT_CEILING_DIRECTORIES: dirname(dir) },
    }),
  deputy: applyPatch,
}

/** Applies the patch to the old tree and compares what comes out. */
const expectAppliesWith = async (applier: string, files: readonly PatchedFile[]): Promise<void> => {
  const dir = mkdtempSync(join(tmpdir(), 'deputy-patch-'))
  try {
    for (const { path, before } of files) if (before !== null) put(join(dir, path), before)
    const text = gitPatch(files)!
    if (text.length > 0) await APPLIERS[applier]!(text, dir)
    for (const { path, after } of files) {
      const at = join(dir, path)
      if (after === null) expect(existsSync(at), path).toBe(false)
      else {
        expect(readFileSync(at).equals(after.content), path).toBe(true)
        expect((statSync(at).mode & 0o100) !== 0, path).toBe(after.executable)
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const put = (path: string, { content, executable }: PatchedState): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  chmodSync(path, executable ? 0o755 : 0o644)
}

describe.each(hasGit ? ['git', 'deputy'] : ['deputy'])('a patch that %s applies', applier => {
  const expectApplies = (files: readonly PatchedFile[]): Promise<void> => expectAppliesWith(applier, files)

  it('holds new, changed and deleted files, modes and empty files', async () => {
    await expectApplies([
      { path: 'new/deep/file.txt', before: null, after: state('one\ntwo\n') },
      { path: 'changed.txt', before: state('a\nb\nc\n'), after: state('a\nB\nc\nd') },
      { path: 'gone.txt', before: state('bye\n'), after: null },
      { path: 'gone-empty', before: state(''), after: null },
      { path: 'new-empty', before: null, after: state('') },
      { path: 'script.sh', before: state('#!/bin/sh\n'), after: state('#!/bin/sh\n', true) },
      { path: 'both.sh', before: state('x\n', true), after: state('y\n', false) },
      { path: 'emptied', before: state('full\n'), after: state('') },
    ])
  })

  it('holds binary files', async () => {
    const noise = Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919) % 256))
    await expectApplies([
      { path: 'new.bin', before: null, after: state(noise, true) },
      { path: 'changed.bin', before: state(noise), after: state(Buffer.concat([noise, noise])) },
      { path: 'gone.bin', before: state(noise), after: null },
      { path: 'was-text', before: state('text\n'), after: state(Buffer.from([0, 1, 2])) },
      { path: 'latin1.txt', before: null, after: state(Buffer.from('caf\xe9\n', 'latin1')) },
    ])
  })

  it('survives unusual names and line ends', async () => {
    const names = [
      'with space.txt',
      'quote".txt',
      'back\\slash',
      'tab\there',
      'new\nline',
      'ünï→日本.txt',
      '-dash',
      'a/b c/d',
    ]
    await expectApplies(
      names.map(path => ({ path, before: state('old\r\n'), after: state('new\r\n no end') })),
    )
    await expectApplies(names.map(path => ({ path, before: null, after: state('x\n') })))
  })

  it('says nothing about what did not change', () => {
    expect(gitPatch([{ path: 'same', before: state('x'), after: state('x') }])?.length).toBe(0)
  })

  it('is given up when it grows too large', () => {
    expect(
      gitPatch([{ path: 'big', before: null, after: state('line\n'.repeat(1000)) }], 1000),
    ).toBeUndefined()
  })

  it('applies whatever the contents are', async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
      fc
        .array(fc.constantFrom('a', 'b', 'c', '', ' ', '\t', '\r'), { maxLength: 30 })
        .map(lines => Buffer.from(lines.join('\n'))),
    )
    const version = fc.option(fc.record({ content, executable: fc.boolean() }), { nil: null })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ before: version, after: version }), { minLength: 1, maxLength: 6 }),
        async pairs => {
          await expectApplies(
            pairs.flatMap(({ before, after }, index) =>
              before === null && after === null ? [] : [{ path: `f${index}`, before, after }],
            ),
          )
        },
      ),
      { numRuns: 40 },
    )
  })
})
