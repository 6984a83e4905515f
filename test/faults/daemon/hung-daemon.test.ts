import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { CLI, newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'

const start = useDaemons()

interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const deputy = ({ directory }: TestDaemon, ...args: readonly string[]): Promise<Ran> =>
  promisify(execFile)(process.execPath, [CLI, ...args], {
    env: { PATH: process.env.PATH, HOME: directory, DEPUTY_HOME: directory, DEPUTY_HTTP: 'false' },
  }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    error => ({ code: error.code, stdout: error.stdout, stderr: error.stderr }),
  )

const hang = (daemon: TestDaemon): void => {
  process.kill(daemon.pid, 'SIGSTOP')
}

describe('a daemon whose socket cannot be made', () => {
  it('ends with the reason and leaves nothing running', async () => {
    const directory = newHome()
    mkdirSync(join(directory, 'run', 'deputy.sock', 'in-the-way'), { recursive: true })
    const daemon = await start({ directory, ready: false })
    expect(await daemon.ended()).not.toBe(0)
    expect(daemon.log()).toContain('deputy.sock')
    rmSync(join(directory, 'run'), { recursive: true })
    const next = await start({ directory })
    expect((await next.client.daemon()).pid).toBe(next.pid)
  })
})

describe('a daemon whose socket has vanished', () => {
  it.each([
    ['the socket', (socket: string) => socket],
    ['its directory', dirname],
  ])('makes it again: %s', async (_, removed) => {
    const daemon = await start()
    const before = await daemon.client.daemon()
    rmSync(removed(daemon.home.socket), { recursive: true })
    const { stdout, stderr } = await deputy(daemon, 'daemon', 'start', '--json')
    expect(stdout, `${stderr}\n${daemon.log()}`).not.toBe('')
    expect(JSON.parse(stdout)).toMatchObject({ pid: before.pid, started_at: before.started_at })
  })

  it('keeps the connections that were open', async () => {
    const daemon = await start()
    const events = daemon.client.followEvents({ after: 0, signal: new AbortController().signal })
    const next = events.next()
    await until(async () => (await daemon.client.daemon()).pid === daemon.pid, 'the daemon answers')
    rmSync(daemon.home.socket)
    const job = JSON.parse((await deputy(daemon, 'submit', '--json', '--', 'true')).stdout)
    expect((await next).value).toMatchObject({ jobId: job.job_id, type: 'submitted' })
  })
})

describe('a daemon that hangs', () => {
  it('is found by its lock: status names it and what to do', async () => {
    const daemon = await start()
    hang(daemon)
    rmSync(daemon.home.socket)
    const { code, stdout } = await deputy(daemon, 'daemon', 'status')
    expect(code).toBe(1)
    expect(stdout).toContain(`${daemon.pid}`)
    expect(stdout).toContain('deputy daemon restart')
    expect(JSON.parse((await deputy(daemon, 'daemon', 'status', '--json')).stdout)).toMatchObject({
      running: true,
      answers: false,
      pid: daemon.pid,
    })
  })

  it('is ended by restart, and the next one serves', async () => {
    const daemon = await start()
    hang(daemon)
    const { stdout } = await deputy(daemon, 'daemon', 'restart', '--json')
    expect(await daemon.ended()).toBe('SIGKILL')
    const info = JSON.parse(stdout)
    expect(info.pid).not.toBe(daemon.pid)
    await deputy(daemon, 'daemon', 'stop')
  })

  it('is ended by stop although its socket is gone', async () => {
    const daemon = await start()
    hang(daemon)
    rmSync(daemon.home.socket)
    const { stdout } = await deputy(daemon, 'daemon', 'stop')
    expect(stdout).toContain('stopped')
    expect(await daemon.ended()).toBe('SIGKILL')
  })

  it('is left alone when only an idle one may be stopped', async () => {
    const daemon = await start()
    hang(daemon)
    const { code, stderr } = await deputy(daemon, 'daemon', 'stop', '--if-idle')
    expect(code).not.toBe(0)
    expect(stderr).toContain('does not answer')
    process.kill(daemon.pid, 'SIGCONT')
    expect((await daemon.client.daemon()).pid).toBe(daemon.pid)
  })

  it('is not mistaken for another process that has its number now', async () => {
    const daemon = await start()
    const file = join(daemon.home.stateDir, 'daemon.pid')
    const record = JSON.parse(readFileSync(file, 'utf8'))
    await daemon.kill()
    // This test process stands in for whoever got the number.
    writeFileSync(file, JSON.stringify({ ...record, pid: process.pid }))
    const { stdout } = await deputy(daemon, 'daemon', 'stop')
    expect(stdout).toContain('no daemon was running')
  })
})
