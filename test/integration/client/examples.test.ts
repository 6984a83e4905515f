import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { useDaemons } from '../../support/daemon.ts'

const startDaemon = useDaemons()
const run = promisify(execFile)

const example = (
  name: string,
  args: string[],
  options: { directory: string; cwd?: string; agent?: string },
) =>
  run(process.execPath, [fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url)), ...args], {
    cwd: options.cwd ?? options.directory,
    env: {
      PATH: process.env.PATH,
      HOME: options.directory,
      DEPUTY_HOME: options.directory,
      ...(options.agent && { AGENT: options.agent }),
    },
  })

describe('the examples', () => {
  it('map a command over files', async () => {
    const { directory } = await startDaemon()
    writeFileSync(join(directory, 'one'), 'a\nb\n')
    writeFileSync(join(directory, 'two'), 'c\n')
    const { stdout } = await example('map-files.mjs', ['wc -l < input', 'one', 'two'], { directory })
    expect(stdout).toBe('one\tsuccess\t2\ntwo\tsuccess\t1\n')
  })

  it('build a directory and keep the artifacts', async () => {
    const { directory } = await startDaemon()
    const project = join(directory, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'source.txt'), 'hello')
    const target = join(directory, 'nightly')
    const build = ['mkdir dist && tr a-z A-Z < source.txt > dist/out.txt && echo built', 'dist/**', target]
    const { stdout, stderr } = await example('nightly-build.mjs', [project, ...build], { directory })
    expect(stdout).toBe('built\n')
    expect(stderr).toContain('success, 1 artifacts')
    expect(readFileSync(join(target, 'dist/out.txt'), 'utf8')).toBe('HELLO')
  })

  it('choose the smallest patch that passes the check', async () => {
    const { directory } = await startDaemon()
    const project = join(directory, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'answer.txt'), '0\n')
    // The script agent stands for an AI agent: what it is told is a shell script.
    const { stdout, stderr } = await example(
      'best-of-n.mjs',
      ['2', 'echo 42 > answer.txt', 'grep -q 42 answer.txt'],
      {
        directory,
        cwd: project,
        agent: 'script',
      },
    )
    expect(stderr).toContain('attempt 1: check: success')
    expect(stdout).toContain('+42')
  })
})
