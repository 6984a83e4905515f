import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { applyPatch } from '../../../src/cli/patch/apply.ts'
import { parseChanges } from '../../../src/cli/patch/parse.ts'
import { showPatch } from '../../../src/cli/patch/show.ts'
import { createColors } from '../../../src/cli/terminal/colors.ts'

const hasGit = (() => {
  try {
    execFileSync('git', ['--version'])
    return true
  } catch {
    return false
  }
})()

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
const RENAME = `diff --git a/x.txt b/y.txt
similarity index 100%
rename from x.txt
rename to y.txt
`

describe.each([
  ['git', true],
  ['our own hands', false],
])('applying a patch with %s', (_, git) => {
  const test = git && !hasGit ? it.skip : it

  test('edits, creates, deletes and renames', async () => {
    const top = scratch({ 'src/a.txt': 'one\ntwo\nthree\n', 'old.txt': 'gone\n', 'x.txt': 'x\n' })
    const files = await applyPatch(bytes(EDIT + CREATE + REMOVE + RENAME), top, { git })
    expect(readFileSync(join(top, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n')
    expect(readFileSync(join(top, 'new/tool.sh'), 'utf8')).toBe('echo hi\n')
    expect(statSync(join(top, 'new/tool.sh')).mode & 0o111).not.toBe(0)
    expect(existsSync(join(top, 'old.txt'))).toBe(false)
    expect(existsSync(join(top, 'x.txt'))).toBe(false)
    expect(readFileSync(join(top, 'y.txt'), 'utf8')).toBe('x\n')
    expect(files).toEqual(['src/a.txt', 'new/tool.sh', 'old.txt', 'y.txt'])
  })

  test('keeps a file executable when only its text changes', async () => {
    const top = scratch({ 'src/a.txt': 'one\ntwo\nthree\n' })
    chmodSync(join(top, 'src/a.txt'), 0o755)
    await applyPatch(bytes(EDIT), top, { git })
    expect(statSync(join(top, 'src/a.txt')).mode & 0o111).not.toBe(0)
  })

  test('changes nothing at all when one file does not fit', async () => {
    const top = scratch({ 'src/a.txt': 'something else\n', 'old.txt': 'gone\n' })
    await expect(applyPatch(bytes(CREATE + REMOVE + EDIT), top, { git })).rejects.toThrow(/does not apply/)
    expect(existsSync(join(top, 'new'))).toBe(false)
    expect(existsSync(join(top, 'old.txt'))).toBe(true)
  })

  test('does not overwrite a file that the patch believes to be new', async () => {
    const top = scratch({ 'new/tool.sh': 'mine\n' })
    await expect(applyPatch(bytes(CREATE), top, { git })).rejects.toThrow(/does not apply/)
    expect(readFileSync(join(top, 'new/tool.sh'), 'utf8')).toBe('mine\n')
  })

  test('writes through no symbolic link', async () => {
    const outside = scratch()
    const top = scratch()
    symlinkSync(outside, join(top, 'new'))
    await expect(applyPatch(bytes(CREATE), top, { git })).rejects.toThrow(/does not apply/)
    expect(existsSync(join(outside, 'tool.sh'))).toBe(false)
  })

  test('works in a subdirectory of a repository', async () => {
    if (!hasGit) return
    const repository = scratch({ 'part/src/a.txt': 'one\ntwo\nthree\n' })
    execFileSync('git', ['init', '-q'], { cwd: repository })
    await applyPatch(bytes(EDIT), join(repository, 'part'), { git })
    expect(readFileSync(join(repository, 'part/src/a.txt'), 'utf8')).toContain('TWO')
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
