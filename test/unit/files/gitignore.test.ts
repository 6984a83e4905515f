import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ignoreBudget, isIgnored, parseIgnoreRules } from '../../../src/files/gitignore.ts'
import { walkWorkspace } from '../../../src/files/walk-workspace.ts'
import { has } from '../../support/has.ts'

const withTree = async (files: Record<string, string>, use: (root: string) => Promise<void>) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-ignore-')))
  try {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    }
    await use(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const files = async (root: string): Promise<string[]> => {
  const found: string[] = []
  for await (const { path, stats } of walkWorkspace(root)) if (stats.isFile()) found.push(path)
  return found.sort()
}

const filesOfGit = (root: string): string[] =>
  execFileSync('git', ['ls-files', '-z', '--others', '--exclude-standard'], { cwd: root })
    .toString('utf8')
    .split('\0')
    .filter(Boolean)
    .sort()

const PATHS = [
  'a',
  'b',
  'a.o',
  'b.o',
  ' ',
  'x y',
  '#a',
  '!b',
  'a[b',
  'dir/a',
  'dir/b.o',
  'dir/sub/a',
  'dir/sub/deep/a.o',
].concat(['sub/a', 'sub/deep/b', 'deep/sub/a', 'A', 'ab', 'abc', 'a-b', 'a]b', 'dir.o/a', '0', 'a\\b'])

describe('.gitignore', () => {
  it.skipIf(!has('git'))('means what it means to git', async () => {
    const piece = fc.constantFrom(
      ...[
        'a',
        'b',
        'o',
        'dir',
        'sub',
        'deep',
        '*',
        '**',
        '**/',
        '/**',
        '/',
        '?',
        '.',
        '\\',
        ' ',
        '\\ ',
        '#',
        '!',
      ],
      ...[
        '[ab]',
        '[!a]',
        '[^b]',
        '[a-c]',
        '[]a]',
        '[',
        ']',
        '[[:alpha:]]',
        '[[:digit:]',
        '[\\]]',
        '*.o',
        '-',
        '\t',
      ],
    )
    // Next to other characters git's `**` depends on where things lie in memory (before 2.41).
    const line = fc
      .array(piece, { maxLength: 5 })
      .map(parts => parts.join(''))
      .filter(text => !/[^/]\*\*|\*\*[^/]/.test(text.replace(/^!/, '')))
    const text = fc.array(line, { maxLength: 5 }).map(lines => lines.join('\n'))
    const ends = fc.constantFrom('', '\n', '\r\n')
    const tree = fc.record({ top: text, dir: text, sub: text, end: ends })
    const all = Object.fromEntries(PATHS.map(path => [path, '']))
    await withTree(all, async root => {
      execFileSync('git', ['init', '-q'], { cwd: root })
      await fc.assert(
        fc.asyncProperty(tree, async ({ top, dir, sub, end }) => {
          writeFileSync(join(root, '.gitignore'), top + end)
          writeFileSync(join(root, 'dir/.gitignore'), dir + end)
          writeFileSync(join(root, 'dir/sub/.gitignore'), sub + end)
          expect(await files(root)).toEqual(filesOfGit(root))
        }),
        { numRuns: 100 },
      )
    })
  })

  it('counts from above, too, and may leave out the workspace itself', async () => {
    const tree = {
      '.git/HEAD': '',
      '.gitignore': 'build/\n/app/*.tmp\n',
      'app/x.tmp': '',
      'app/y': '',
      'build/z': '',
    }
    await withTree(tree, async root => {
      expect(await files(join(root, 'app'))).toEqual(['y'])
      expect(await files(join(root, 'build'))).toEqual([])
    })
  })

  it.each([['FIFO'], ['directory'], ['link'], ['socket']])(
    'may be a %s, which says nothing',
    { timeout: 10_000 },
    async kind => {
      await withTree({ 'a.log': '', rules: '*.log\n' }, async root => {
        const path = join(root, '.gitignore')
        if (kind === 'FIFO') execFileSync('mkfifo', [path])
        else if (kind === 'directory') mkdirSync(path)
        else if (kind === 'link') symlinkSync('rules', path)
        else await new Promise<void>(resolve => createServer().listen(path, resolve).unref())
        expect(await files(root)).toEqual(['a.log', 'rules'])
      })
    },
  )

  it('stops the packing when it is too large to be read', async () => {
    await withTree({ '.gitignore': 'secret\n'.repeat(100_000), secret: '' }, async root => {
      await expect(files(root)).rejects.toMatchObject({ code: 'invalid' })
    })
  })

  it.each([
    ['**/a/'.repeat(9), 'a/'.repeat(60)],
    ['*a'.repeat(100), 'a'.repeat(255)],
  ])('takes no time, whatever it says: %s', (rule, path) => {
    const budget = ignoreBudget()
    const before = budget.steps
    isIgnored(path, false, [parseIgnoreRules(`${rule}b`, '')], budget)
    expect(before - budget.steps).toBeLessThan(rule.length * path.length)
  })

  it('is given up when its rules cost too much', () => {
    const rules = [parseIgnoreRules(`*${'a'.repeat(200)}b\n`.repeat(1000), '')]
    const budget = { steps: 10_000_000 }
    expect(() => {
      for (let i = 0; i < 1000; i++) isIgnored('a'.repeat(255), false, rules, budget)
    }).toThrow(/take too long/)
  })
})
