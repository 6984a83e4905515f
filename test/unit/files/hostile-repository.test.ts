import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyPatch } from '../../../src/files/apply-patch.ts'
import { gitPatch } from '../../../src/files/git-patch.ts'
import { packDirectory } from '../../../src/files/pack-directory.ts'
import { has } from '../../support/has.ts'

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-hostile-')))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()

const put = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

const repository = (): void => {
  put('in/a', 'a\n')
  put('out/b', 'b\n')
  put('.gitignore', '*.log\n')
  put('kept.log', '')
  git('init', '-q')
  git('add', '-f', '.')
  git('commit', '-qm', 'x')
}

/** Leaves a file behind when it is run. */
const payload = (): string => `touch ${join(root, 'PWNED')}; false #`

/** Everything that Deputy does with a directory of the user's on this computer. */
const pack = async (): Promise<void> => {
  for await (const _ of packDirectory(root));
}
const apply = async (): Promise<void> => {
  const state = (text: string) => ({ content: Buffer.from(text), executable: false })
  const patch = gitPatch([
    { path: 'in/a', before: state('a\n'), after: state('A\n') },
    { path: 'in/new', before: null, after: state('new\n') },
  ])
  await applyPatch(patch!, root)
}

const ATTACKS: Record<string, () => void> = {
  'a lazy fetch by uploadpack': () => {
    git('sparse-checkout', 'init', '--cone', '--sparse-index')
    git('sparse-checkout', 'set', 'in')
    const tree = git('rev-parse', 'HEAD:out')
    rmSync(join(root, '.git/objects', tree.slice(0, 2), tree.slice(2)))
    git('config', 'core.repositoryformatversion', '1')
    git('config', 'extensions.partialClone', 'origin')
    git('config', 'remote.origin.promisor', 'true')
    git('config', 'remote.origin.url', root)
    git('config', 'remote.origin.uploadpack', payload())
  },
  'a file system monitor': () => void git('config', 'core.fsmonitor', payload()),
  hooks: () => {
    put('.git/evil/post-index-change', `#!/bin/sh\n${payload()}\n`)
    chmodSync(join(root, '.git/evil/post-index-change'), 0o755)
    git('config', 'core.hooksPath', join(root, '.git/evil'))
  },
  'a filter': () => {
    git('config', 'filter.evil.clean', payload())
    git('config', 'filter.evil.smudge', payload())
    git('config', 'filter.evil.process', payload())
    appendFileSync(join(root, '.git/info/attributes'), '* filter=evil diff=evil\n')
  },
  'a converter for diffs': () => {
    git('config', 'diff.evil.textconv', payload())
    git('config', 'diff.external', payload())
    put('.gitattributes', '* diff=evil\n')
  },
  'an included configuration': () => {
    put('included', `[core]\n\tfsmonitor = "${payload()}"\n`)
    git('config', 'include.path', join(root, 'included'))
  },
  'a remote by ssh': () => {
    git('config', 'core.sshCommand', payload())
    git('config', 'remote.origin.url', 'ssh://example.invalid/x')
    git('config', 'credential.helper', `!${payload()}`)
  },
  'a pager and an editor': () => {
    git('config', 'core.pager', payload())
    git('config', 'core.editor', payload())
    git('config', 'pager.apply', payload())
  },
  'a work tree elsewhere': () => {
    git('config', 'core.worktree', '/')
    git('config', 'core.fsmonitor', payload())
  },
  'a submodule': () => {
    mkdirSync(join(root, 'sub'))
    execFileSync('git', ['init', '-q'], { cwd: join(root, 'sub') })
    execFileSync('git', ['config', 'core.fsmonitor', payload()], { cwd: join(root, 'sub') })
    put('.gitmodules', `[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tupdate = !${payload()}\n`)
  },
  'other objects': () => {
    put('.git/objects/info/alternates', '/nonexistent\n')
    git('config', 'core.alternateRefsCommand', payload())
  },
}

describe.skipIf(!has('git'))('a hostile repository runs nothing', () => {
  it.each(Object.keys(ATTACKS))('by %s', async name => {
    repository()
    ATTACKS[name]!()
    await pack()
    await apply()
    expect(existsSync(join(root, 'PWNED'))).toBe(false)
  })
})

describe('git', () => {
  it('is never started', async () => {
    const path = process.env.PATH
    const bin = mkdtempSync(join(tmpdir(), 'deputy-bin-'))
    writeFileSync(join(bin, 'git'), `#!/bin/sh\n${payload()}\n`, { mode: 0o755 })
    put('in/a', 'a\n')
    put('.git/HEAD', 'ref: refs/heads/main\n')
    mkdirSync(join(root, '.git/objects'))
    mkdirSync(join(root, '.git/refs'))
    process.env.PATH = `${bin}:${path}`
    try {
      await pack()
      await apply()
    } finally {
      process.env.PATH = path
      rmSync(bin, { recursive: true })
    }
    expect(existsSync(join(root, 'PWNED'))).toBe(false)
  })
})
