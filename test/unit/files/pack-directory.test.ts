import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { extract, type Header } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import { packDirectory } from '../../../src/files/pack-directory.ts'

const scratch = (files: Record<string, string>): string => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-workspace-')))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

const packed = async (root: string): Promise<Map<string, { header: Header; text: string }>> => {
  const entries = new Map<string, { header: Header; text: string }>()
  const archive: Uint8Array[] = []
  for await (const chunk of packDirectory(root)) archive.push(chunk)
  const tar = extract()
  tar.end(Buffer.concat(archive))
  for await (const entry of tar) {
    const chunks: Buffer[] = []
    for await (const chunk of entry) chunks.push(chunk as Buffer)
    entries.set(entry.header.name.replace(/\/$/, ''), {
      header: entry.header,
      text: Buffer.concat(chunks).toString(),
    })
  }
  return entries
}

const names = async (root: string): Promise<string[]> => [...(await packed(root)).keys()]

const git = (root: string, ...args: string[]): void => {
  const name = ['-c', 'user.name=test', '-c', 'user.email=test@example.org', '-c', 'init.defaultBranch=main']
  execFileSync('git', [...name, ...args], { cwd: root, stdio: 'ignore' })
}

const hasGit = (() => {
  try {
    execFileSync('git', ['--version'])
    return true
  } catch {
    return false
  }
})()

describe('a packed workspace', () => {
  it('keeps contents, modes, empty files and empty directories, in a fixed order', async () => {
    const root = scratch({ 'b.txt': 'b', 'a/x.sh': 'echo', empty: '' })
    mkdirSync(join(root, 'hollow'))
    chmodSync(join(root, 'a/x.sh'), 0o755)
    const entries = await packed(root)
    expect([...entries.keys()]).toEqual(['a', 'a/x.sh', 'b.txt', 'empty', 'hollow'])
    expect(entries.get('a/x.sh')).toMatchObject({ text: 'echo', header: { mode: 0o755 } })
    expect(entries.get('empty')).toMatchObject({ text: '' })
  })

  it('keeps links as links and reads nothing through them', async () => {
    const outside = scratch({ secret: 'hidden' })
    const root = scratch({ 'a.txt': 'a' })
    symlinkSync(join(outside, 'secret'), join(root, 'file'))
    symlinkSync(outside, join(root, 'directory'))
    const entries = await packed(root)
    expect([...entries.keys()]).toEqual(['a.txt', 'directory', 'file'])
    expect(entries.get('file')).toMatchObject({
      header: { type: 'symlink', linkname: join(outside, 'secret') },
    })
    expect(entries.get('directory')?.header.type).toBe('symlink')
  })

  it('leaves out .git and what .gitignore files say, the innermost first', async () => {
    const root = scratch({
      '.git/config': '',
      '.gitignore': '*.log\nbuild/\n/only-top\n',
      'a.log': '',
      'build/x': '',
      'only-top': '',
      'sub/only-top': '',
      'sub/.gitignore': '!keep.log\nlocal\n',
      'sub/keep.log': '',
      'sub/other.log': '',
      'sub/local': '',
      'sub/.git': 'gitdir: elsewhere',
    })
    expect(await names(root)).toEqual(['.gitignore', 'sub', 'sub/.gitignore', 'sub/keep.log', 'sub/only-top'])
  })

  it('honours the .gitignore files above it when it is a part of a repository', async () => {
    const root = scratch({
      '.git/info/exclude': 'private\n',
      '.gitignore': 'node_modules\n/packages/app/generated\n',
      'packages/.gitignore': '*.tmp\n',
      'packages/app/index.js': '',
      'packages/app/x.tmp': '',
      'packages/app/private': '',
      'packages/app/node_modules/dep/index.js': '',
      'packages/app/generated/x': '',
      'packages/app/src/generated/x': '',
    })
    expect(await names(join(root, 'packages/app'))).toEqual([
      'index.js',
      'src',
      'src/generated',
      'src/generated/x',
    ])
  })

  it.skipIf(!hasGit)('has what git tracks although it is ignored', async () => {
    const root = scratch({
      '.gitignore': 'dist/\n*.log\n',
      'dist/deep/kept.js': '',
      'dist/deep/dropped.js': '',
      'fixture.log': '',
      'noise.log': '',
    })
    git(root, 'init')
    git(root, 'add', '-f', '.gitignore', 'dist/deep/kept.js', 'fixture.log')
    expect(await names(root)).toEqual(['.gitignore', 'dist', 'dist/deep', 'dist/deep/kept.js', 'fixture.log'])
  })

  it('names the file that cannot be read', async () => {
    if (process.getuid?.() === 0) return
    const root = scratch({ 'a.txt': 'a' })
    chmodSync(join(root, 'a.txt'), 0)
    await expect(names(root)).rejects.toThrow(/Cannot read the workspace file 'a.txt'/)
  })

  it('is refused for what is no directory', async () => {
    const root = scratch({ 'a.txt': 'a' })
    await expect(names(join(root, 'a.txt'))).rejects.toMatchObject({ code: 'invalid' })
    await expect(names(join(root, 'none'))).rejects.toMatchObject({ code: 'invalid' })
  })
})
