import { expect, it } from 'vitest'
import { parsePatch } from '../../../web/job/patch.ts'

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
