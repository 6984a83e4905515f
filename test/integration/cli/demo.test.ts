import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestCli, noProvider, until } from '../../support/cli.ts'
import { requireOrSkip } from '../../support/require.ts'

const missing = requireOrSkip(await noProvider())
const cli = createTestCli()
afterAll(() => cli.close())

const stageOf = (stdout: string): { home: string; pid: number } => {
  const [, pid, home] = /pid (\d+)\) in (\S+)\./.exec(stdout) ?? []
  return { home: home ?? '', pid: Number(pid) }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Neither the home nor the daemon nor anything that the jobs ran in. */
const expectNothingLeft = async (stdout: string): Promise<void> => {
  const { home, pid } = stageOf(stdout)
  expect(home).toContain('deputy-demo-')
  expect(existsSync(home)).toBe(false)
  expect(isAlive(pid)).toBe(false)
  await until(() => !processes().some(line => line.includes(home)), 'the last process of the demo to end')
}

const processes = (): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(name => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })

describe.skipIf(missing)('the demo', () => {
  it('shows a success, a failure, a timeout and a fence, and leaves nothing behind', async () => {
    const done = await cli.run(['demo'])
    expect(done.stderr).toBe('')
    expect(done.code).toBe(0)
    expect(done.stdout).toContain('total: 12 EUR')
    expect(done.stdout).toContain('could not reach the internet')
    expect(done.stdout).not.toContain('LEAK')
    expect(done.stdout).toMatch(/failed +3 /)
    expect(done.stdout).toMatch(/timeout +/)
    expect(done.stdout).toMatch(/PHASES/)
    expect(done.stdout).toContain('All jobs ended as expected.')
    await expectNothingLeft(done.stdout)
  })

  it('cleans up when it is interrupted', async () => {
    const demo = cli.start(['demo'])
    await demo.saw('still busy (1)')
    demo.child.kill('SIGINT')
    const done = await demo.finished
    expect(done.code).toBe(130)
    await expectNothingLeft(done.stdout)
  })
})
