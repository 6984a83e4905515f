import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { pathsInIndex } from '../../../src/files/git-index.ts'
import { trackedFiles } from '../../../src/files/tracked-files.ts'
import { has } from '../../support/has.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})

const git = (root: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })

const FILES = [
  'a',
  'dir/b',
  'dir/deep/c',
  'dir/deep/d',
  'ünï→日本.txt',
  'with\nnewline',
  `long/${'x'.repeat(200)}`,
  'z',
]

const repository = (...init: string[]): string => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-index-')))
  roots.push(root)
  for (const path of FILES) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), path)
  }
  git(root, 'init', '-q', ...init)
  git(root, 'add', '-A')
  git(root, 'commit', '-qm', 'x')
  return root
}

const index = (root: string): string[] | undefined => pathsInIndex(readFileSync(join(root, '.git/index')))

describe.skipIf(!has('git'))('the git index', () => {
  it.each([
    ['of version 2', [], []],
    ['of version 3, with flags', [], ['update-index', '--skip-worktree', 'a']],
    ['of version 4, which shortens paths', [], ['update-index', '--index-version', '4']],
    ['of a repository with SHA-256', ['--object-format=sha256'], []],
    ['with an untracked cache', [], ['update-index', '--force-untracked-cache']],
  ])('is read: %s', (_, init, command) => {
    const root = repository(...init)
    if (command.length > 0) git(root, ...command)
    expect(index(root)?.sort()).toEqual([...FILES].sort())
  })

  it('of a sparse checkout names no directories', () => {
    const root = repository()
    git(root, 'sparse-checkout', 'init', '--cone', '--sparse-index')
    git(root, 'sparse-checkout', 'set', 'long')
    expect(index(root)).toEqual(expect.arrayContaining(['a', `long/${'x'.repeat(200)}`]))
    expect(index(root)?.filter(path => path.startsWith('dir'))).toEqual([])
  })

  it('is not understood when it is split over files', () => {
    const root = repository()
    git(root, 'update-index', '--split-index')
    expect(index(root)).toBeUndefined()
  })

  it('of a linked worktree is found', async () => {
    const root = repository()
    const tree = `${root}-tree`
    roots.push(tree)
    git(root, 'worktree', 'add', '-q', tree)
    expect([...(await trackedFiles(join(tree, '.git'), 'dir/'))].sort()).toEqual([
      'b',
      'deep',
      'deep/c',
      'deep/d',
    ])
  })

  it('never fails to be read or refused, whatever is in it', () => {
    const sound = readFileSync(join(repository(), '.git/index'))
    // Without a digest, so that the rest is looked at.
    sound.fill(0, sound.length - 20)
    expect(pathsInIndex(sound)).toHaveLength(FILES.length)
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(sound.length - 21), fc.nat(255)), { maxLength: 8 }),
        fc.nat(40),
        (changes, cut) => {
          const damaged = Buffer.from(sound)
          for (const [at, value] of changes) damaged[at] = value
          const result = pathsInIndex(
            Buffer.concat([damaged.subarray(0, damaged.length - 20 - cut), Buffer.alloc(20)]),
          )
          expect(result === undefined || Array.isArray(result)).toBe(true)
        },
      ),
      { numRuns: 2000 },
    )
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), bytes => void pathsInIndex(Buffer.from(bytes))))
  })
})
