import { expect, it } from 'vitest'
import { pairLines, parsePatch } from '../../../web/review/patch.ts'

const PATCH = `diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,3 @@
 one
-two
+2
+--- not a header
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/logo.png b/logo.png
new file mode 100644
GIT binary patch
`

it('reads a patch file by file', () => {
  const files = parsePatch(PATCH)
  expect(files.map(({ path, added, removed }) => [path, added, removed])).toEqual([
    ['a.txt', 2, 1],
    ['gone', 0, 1],
    ['logo.png', 0, 0],
  ])
  expect(files[0]?.lines.map(line => line.kind)).toEqual(['hunk', 'same', 'removed', 'added', 'added'])
})

it('finds no files in what is no patch', () => {
  expect(parsePatch('')).toEqual([])
  expect(parsePatch('hello\nworld')).toEqual([])
})

it('numbers the lines of both sides and puts a replaced line beside its replacement', () => {
  const [first] = parsePatch(PATCH)
  expect(first?.lines.map(({ before, after }) => [before, after])).toEqual([
    [undefined, undefined],
    [1, 1],
    [2, undefined],
    [undefined, 2],
    [undefined, 3],
  ])
  expect(pairLines(first?.lines ?? []).map(({ left, right }) => [left?.text, right?.text])).toEqual([
    ['@@ -1,2 +1,3 @@', '@@ -1,2 +1,3 @@'],
    ['one', 'one'],
    ['two', '2'],
    [undefined, '--- not a header'],
  ])
})
