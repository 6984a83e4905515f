import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CLI } from '../../support/daemon.ts'
import { fencedBlocks } from '../../support/docs/fenced-blocks.ts'
import { findTools, runTool } from '../../support/e2e-tools.ts'
import { removeDirectory } from '../../support/remove-directory.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The project in whose directory the commands run: it has what they name. */
const PROJECT = {
  'README.md': 'The colour of these two words\n',
  Makefile: 'test:\n\t@mkdir -p report\n\t@echo tested | tee report/index.html\n',
  'package.json': JSON.stringify({ name: 'app', version: '1.0.0', scripts: { test: 'true', build: 'true' } }),
  'package-lock.json': JSON.stringify({ name: 'app', version: '1.0.0', lockfileVersion: 3, packages: {} }),
  'input.csv': 'b,2\na,1\n',
  'tools/clean.py': 'import sys\nprint(sys.stdin.read())\n',
  'long-build.sh': '#!/bin/sh\necho built\n',
  'nightly.sh': '#!/bin/sh\necho done\n',
}

const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map(name => `docs/${name}`)].filter(name =>
  name.endsWith('.md'),
)
const commandsOf = (page: string) =>
  fencedBlocks(readFileSync(join(ROOT, page), 'utf8')).filter(
    ({ language }) => language === 'sh' || language === 'ts',
  )
const withCommands = pages.filter(page => commandsOf(page).some(({ notRun }) => notRun === undefined))

const { tools, reason } = findTools()

describe.skipIf(!tools)(`the commands of the documentation${reason ? ` (${reason})` : ''}`, () => {
  // Each page has a home and a daemon of its own, and waits most of the time.
  it.concurrent.for(withCommands)('run as %s shows them', async (page, { onTestFinished }) => {
    const home = mkdtempSync(join(tmpdir(), 'deputy-docs-'))
    const env = {
      HOME: home,
      PATH: `${join(home, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
      SHELL: '/bin/bash',
      LANG: 'C.UTF-8',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }
    mkdirSync(join(home, 'bin'))
    writeFileSync(join(home, 'bin/deputy'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`)
    chmodSync(join(home, 'bin/deputy'), 0o755)
    symlinkSync(tools!.claude, join(home, 'bin/claude'))
    mkdirSync(join(home, 'node_modules'))
    symlinkSync(ROOT, join(home, 'node_modules/deputy-mcp'))
    makeProject(join(home, 'app'), page)
    onTestFinished(async () => {
      await runTool(process.execPath, [CLI, 'daemon', 'stop'], { env })
      removeDirectory(home)
    })
    const blocks = commandsOf(page).filter(({ notRun }) => notRun === undefined)
    const script = [
      'set -euo pipefail',
      // The pages are for readers who have used Deputy before: `last` is a job.
      'deputy run -- echo first >/dev/null',
      `trap 'echo "failed: ${page}:$block: $BASH_COMMAND" >&2' ERR`,
      ...blocks.map(
        ({ line, text, language }) => `block=${line}\n${language === 'ts' ? program(text) : text}`,
      ),
    ]
    const { status, stdout, stderr } = await runTool('bash', ['-c', script.join('\n')], {
      env,
      cwd: join(home, 'app'),
      timeoutMs: 120_000,
    })
    expect(status, `${stdout}\n${stderr}`).toBe(0)
  })
})

/** Runs a block of code. One that continues another gets its connection. The code of the pages needs no compiler. */
const program = (text: string): string => {
  const code = text.includes('await connect(')
    ? text
    : `import { connect } from 'deputy-mcp'\nconst deputy = await connect()\n${text}\nawait deputy.close()`
  return `cat > block.mjs <<'END'\n${code}\nEND\nnode block.mjs`
}

/** Writes the project, and the blocks of the page whose first line is a comment with the name of a file. */
const makeProject = (directory: string, page: string): void => {
  const named = fencedBlocks(readFileSync(join(ROOT, page), 'utf8')).flatMap(({ language, text }) => {
    const name = language === 'yaml' ? /^# (\S+\.yaml)\n/.exec(text)?.[1] : undefined
    return name === undefined ? [] : [[name, `${text}\n`] as const]
  })
  for (const [name, text] of [...Object.entries(PROJECT), ...named]) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text, { mode: name.endsWith('.sh') ? 0o755 : 0o644 })
  }
}
