import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { showPatch } from '../../../src/cli/patch/show.ts'
import { createColors } from '../../../src/cli/terminal/colors.ts'
import { applyPatch } from '../../../src/files/apply-patch.ts'
import { gitPatch } from '../../../src/files/git-patch.ts'
import { parseChanges } from '../../../src/files/parse-patch.ts'

const scratch = (files: Record<string, string> = {}): string => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-patch-'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(directory, path, '..'), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  return directory
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const EDIT = `diff --git a/src/a.txt b/src/a.txt
--- a/src/a.txt
+++ b/src/a.txt
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
`
const CREATE = `diff --git a/new/tool.sh b/new/tool.sh
new file mode 100755
--- /dev/null
+++ b/new/tool.sh
@@ -0,0 +1 @@
+echo hi
`
const REMOVE = `diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
`
const MODE = `diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`

describe('applying a patch', () => {
  it('edits, creates and deletes files, and changes modes', async () => {
    const top = scratch({ 'src/a.txt': 'one\ntwo\nthree\n', 'old.txt': 'gone\n', 'run.sh': 'x\n' })
    const files = await applyPatch(bytes(EDIT + CREATE + REMOVE + MODE), top)
    expect(readFileSync(join(top, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n')
    expect(readFileSync(join(top, 'new/tool.sh'), 'utf8')).toBe('echo hi\n')
    expect(statSync(join(top, 'new/tool.sh')).mode & 0o111).not.toBe(0)
    expect(existsSync(join(top, 'old.txt'))).toBe(false)
    expect(statSync(join(top, 'run.sh')).mode & 0o111).not.toBe(0)
    expect(files).toEqual(['src/a.txt', 'new/tool.sh', 'old.txt', 'run.sh'])
    expect(readdirSync(top).sort()).toEqual(['new', 'run.sh', 'src'])
  })

  it('keeps a file executable when only its text changes', async () => {
    const top = scratch({ 'src/a.txt': 'one\ntwo\nthree\n' })
    chmodSync(join(top, 'src/a.txt'), 0o755)
    await applyPatch(bytes(EDIT), top)
    expect(statSync(join(top, 'src/a.txt')).mode & 0o111).not.toBe(0)
  })

  it('changes nothing at all when one file does not fit', async () => {
    const top = scratch({ 'src/a.txt': 'something else\n', 'old.txt': 'gone\n' })
    await expect(applyPatch(bytes(CREATE + REMOVE + EDIT), top)).rejects.toThrow(/does not apply/)
    expect(existsSync(join(top, 'new'))).toBe(false)
    expect(existsSync(join(top, 'old.txt'))).toBe(true)
  })

  it('does not overwrite a file that the patch believes to be new', async () => {
    const top = scratch({ 'new/tool.sh': 'mine\n' })
    await expect(applyPatch(bytes(CREATE), top)).rejects.toThrow(/does not apply/)
    expect(readFileSync(join(top, 'new/tool.sh'), 'utf8')).toBe('mine\n')
  })

  it('writes through no symbolic link', async () => {
    const outside = scratch()
    const top = scratch()
    symlinkSync(outside, join(top, 'new'))
    await expect(applyPatch(bytes(CREATE), top)).rejects.toThrow(/does not apply/)
    expect(existsSync(join(outside, 'tool.sh'))).toBe(false)
  })

  it('keeps the permissions of a file that was there', async () => {
    const top = scratch({ 'src/a.txt': 'one\ntwo\nthree\n' })
    chmodSync(join(top, 'src/a.txt'), 0o600)
    await applyPatch(bytes(EDIT), top)
    expect(statSync(join(top, 'src/a.txt')).mode & 0o777).toBe(0o600)
  })

  it('deletes nothing that has changed meanwhile', async () => {
    const top = scratch({ 'old.txt': 'gone\nand something new\n' })
    await expect(applyPatch(bytes(REMOVE), top)).rejects.toThrow(/differs from what the job saw/)
    expect(existsSync(join(top, 'old.txt'))).toBe(true)
  })

  it('removes the directories it leaves empty, and puts a directory where a file was', async () => {
    const patch = gitPatch([
      { path: 'deep/er/file', before: { content: Buffer.from('x'), executable: false }, after: null },
      { path: 'thing', before: { content: Buffer.from('x'), executable: false }, after: null },
      { path: 'thing/inside', before: null, after: { content: Buffer.from('y'), executable: false } },
    ])
    const top = scratch({ 'deep/er/file': 'x', thing: 'x' })
    await applyPatch(patch!, top)
    expect(readdirSync(top)).toEqual(['thing'])
    expect(readFileSync(join(top, 'thing/inside'), 'utf8')).toBe('y')
  })

  it('does not wait for a FIFO that took the place of a file', { timeout: 5000 }, async () => {
    const top = scratch({ 'src/x': '' })
    execFileSync('mkfifo', [join(top, 'src/a.txt')])
    await expect(applyPatch(bytes(EDIT), top)).rejects.toThrow(/does not apply/)
  })

  it.each([
    ['renames', 'similarity index 100%\nrename from x.txt\nrename to y.txt\n'],
    ['symbolic links', 'new file mode 120000\n--- /dev/null\n+++ b/y.txt\n@@ -0,0 +1 @@\n+/etc/passwd\n'],
    [
      'damaged binary files',
      `index ${'0'.repeat(40)}..${'1'.repeat(40)}\nGIT binary patch\nliteral 9\nzzz\n\n`,
    ],
  ])('refuses %s, which no job sends', async (_, rest) => {
    const top = scratch({ 'x.txt': 'x\n' })
    await expect(applyPatch(bytes(`diff --git a/x.txt b/y.txt\n${rest}`), top)).rejects.toThrow(
      /cannot be read/,
    )
    expect(readdirSync(top)).toEqual(['x.txt'])
  })
})

describe('a hostile patch', () => {
  const touching = (path: string): string => `diff --git a/${path} b/${path}
new file mode 100644
--- /dev/null
+++ b/${path}
@@ -0,0 +1 @@
+evil
`
  it.each([
    '../escape',
    'a/../../escape',
    '.git/hooks/post-checkout',
    'sub/.GIT/config',
    '.git./config',
    'git~1/config',
    'GIT~1 /config',
    'sub/.g\u200cit/config',
    '.git::$INDEX_ALLOCATION/config',
    'a\\.git\\config',
    '/etc/passwd',
  ])('is refused before anything is touched: %s', path => {
    expect(() => parseChanges(touching(path))).toThrow(/The patch is refused/)
  })

  it('may touch files that only look similar', () => {
    expect(parseChanges(touching('.github/x.yml') + touching('.gitignore')).map(change => change.to)).toEqual(
      ['.github/x.yml', '.gitignore'],
    )
  })

  it('cannot command the terminal it is shown on', () => {
    const shown = showPatch('+\x1b]0;x\x07\n-\x1b[2J\n@@ x @@\n', createColors(true))
    expect(shown).toBe('\x1b[32m+^[]0;x^G\x1b[39m\n\x1b[31m-^[[2J\x1b[39m\n\x1b[36m@@ x @@\x1b[39m\n')
  })
})
