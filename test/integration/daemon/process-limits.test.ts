import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { CLI, newHome, removeDirectory } from '../../support/daemon.ts'

const directory = newHome()
afterAll(() => removeDirectory(directory))

/** `deputy daemon start` in a shell with a limit of its own. */
const startWith = (limit: string, env: Readonly<Record<string, string>> = {}): Promise<string> =>
  new Promise(resolve => {
    const child = spawn(
      'sh',
      ['-c', `ulimit ${limit} && exec "$0" "$1" daemon start`, process.execPath, CLI],
      {
        env: {
          PATH: process.env.PATH,
          HOME: directory,
          DEPUTY_HOME: directory,
          DEPUTY_HTTP: 'false',
          ...env,
        },
      },
    )
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', chunk => {
        text += chunk
      })
    child.once('close', () => resolve(text))
  })

describe.skipIf(!existsSync('/proc/self/limits'))('a daemon under a limit that is too low', () => {
  it('names the number of open files that it needs', async () => {
    const text = await startWith('-n 128')
    expect(text).toMatch(/limit of open files is 128; the daemon needs 256/)
    expect(text).toContain('ulimit -n 256')
  })

  it('counts the jobs that it may run', async () => {
    const text = await startWith('-n 1000', { DEPUTY_MAX_RUNNING: '200' })
    expect(text).toMatch(/limit of open files is 1000; the daemon needs 1856/)
    expect(text).toContain('limits.running')
  })

  it('names the address space that it needs', async () => {
    const text = await startWith('-v 4000000')
    expect(text).toMatch(/limit of address space is .* the daemon needs 16\.0 GB/)
    expect(text).toContain('ulimit -v unlimited')
  })
})
