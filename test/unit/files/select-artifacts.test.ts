import { describe, expect, it } from 'vitest'
import { selectArtifacts } from '../../../src/files/select-artifacts.ts'

describe('selecting artifacts', () => {
  const file = (path: string, size = 1) => ({ path, size, type: 'file' as const, mode: 0o644 })

  it('respects limits of count and size, and reports skipped files', () => {
    const listing = { files: [file('a', 5), file('b', 6), file('c', 5), file('d', 1)], truncated: false }
    const chosen = selectArtifacts(listing, ['*'], { files: 2, bytes: 10 })
    expect(chosen.wanted.map(({ path }) => path)).toEqual(['a', 'c'])
    expect(chosen.skipped).toEqual([
      { path: 'b', reason: expect.stringContaining('exceed 10 B') },
      { path: 'd', reason: 'more than 2 files match' },
    ])
  })

  it('skips files of git in every spelling that a file system accepts', () => {
    const hostile = [
      '.git/config',
      'sub/.GIT/commondir',
      '.git./HEAD',
      'git~1/x',
      '.git::$INDEX_ALLOCATION/x',
    ]
    const harmless = ['.gitignore', '.github/x', 'repo.git/config', 'a']
    const listing = { files: [...hostile, ...harmless].map(path => file(path)), truncated: false }
    const chosen = selectArtifacts(listing, ['**'], { files: 20, bytes: 100 })
    expect(chosen.wanted.map(({ path }) => path)).toEqual([...harmless].sort())
    expect(chosen.skipped).toEqual([
      { path: '.git', reason: expect.stringContaining("5 of git's own files") },
    ])
  })

  it('reports a truncated listing', () => {
    expect(
      selectArtifacts({ files: [], truncated: true }, ['*'], { files: 1, bytes: 1 }).skipped,
    ).toHaveLength(1)
  })
})
