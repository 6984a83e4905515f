import { expect, it } from 'vitest'
import { languageOf, tokens } from '../../../web/syntax.ts'

const kinds = (path: string, line: string) =>
  tokens(line, languageOf(path))
    .filter(({ kind }) => kind !== undefined)
    .map(({ kind, text }) => [kind, text])

it('colours comments, strings, numbers and keywords', () => {
  expect(kinds('src/a.ts', `const url = 'http://x' // "note" 1`)).toEqual([
    ['keyword', 'const'],
    ['string', `'http://x'`],
    ['comment', '// "note" 1'],
  ])
  expect(kinds('a.py', 'if x1 == 0x1f: return "#"')).toEqual([
    ['keyword', 'if'],
    ['number', '0x1f'],
    ['keyword', 'return'],
    ['string', '"#"'],
  ])
  expect(kinds('Makefile', 'a: b#c # d')).toEqual([['comment', '# d']])
})

it('keeps every character of a line, also of one that is no code', () => {
  const lines = ['', '\t"unclosed', "it's", '/* open', 'x'.repeat(5000), '`', '\\', 'a 1 b "c" // d']
  for (const path of ['a.ts', 'a.sh', 'a.py', 'a.yaml', 'notes.txt'])
    for (const line of lines)
      expect(
        tokens(line, languageOf(path))
          .map(({ text }) => text)
          .join(''),
      ).toBe(line)
})
