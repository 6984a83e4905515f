import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/daemon-client.ts'
import { CLI, newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'

const start = useDaemons()

describe('one home', () => {
  it('has one daemon: of many starters one wins, the others leave it the field', async () => {
    const directory = newHome()
    const racers = await Promise.all(Array.from({ length: 4 }, () => start({ directory, ready: false })))
    const ends = new Map<TestDaemon, number | string>()
    for (const racer of racers) void racer.ended().then(end => ends.set(racer, end))
    await until(() => ends.size === 3, 'three of four have left', 30_000)
    expect([...ends.values()]).toEqual([0, 0, 0])
    const winner = racers.find(racer => !ends.has(racer))!
    await until(
      async () => (await winner.client.daemon().catch(() => undefined))?.pid === winner.pid,
      'the winner serves',
      30_000,
    )
  })

  it('is taken over at once when its daemon was killed', async () => {
    const first = await start()
    await first.kill()
    const second = await start({ directory: first.directory })
    expect((await second.client.daemon()).pid).toBe(second.pid)
  })

  it('is served by a newer daemon to an older front, and an older idle daemon is replaced by a newer front', async () => {
    const daemon = await start()
    const older = connect(daemon.home, { origin: 'old', version: '0.0.1' })
    expect((await older.daemon()).pid).toBe(daemon.pid)
    older.close()
    const { pid } = JSON.parse(
      execFileSync(process.execPath, [CLI, 'daemon', 'status', '--json'], {
        env: { ...process.env, DEPUTY_HOME: daemon.directory },
        encoding: 'utf8',
      }),
    )
    expect(pid).toBe(daemon.pid)
  })

  it('with an invalid configuration reports it and exits 2', async () => {
    const directory = newHome()
    mkdirSync(join(directory, 'config'), { recursive: true })
    writeFileSync(join(directory, 'config', 'config.yaml'), 'defualts: {}\n')
    const daemon = await start({ directory, ready: false })
    expect(await daemon.ended()).toBe(2)
    expect(daemon.log()).toContain("did you mean 'defaults'?")
    expect(daemon.log()).not.toContain('    at ')
  })

  it('whose database is damaged is left as it is', async () => {
    const directory = newHome()
    const file = join(directory, 'state', 'deputy.db')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, 'not a database '.repeat(500))
    const daemon = await start({ directory, ready: false })
    expect(await daemon.ended()).not.toBe(0)
    expect(daemon.log()).toContain('damaged')
  })

  it('keeps its socket, tokens and database to its owner', async () => {
    const daemon = await start()
    const modes = execFileSync(
      'stat',
      [
        '-c',
        '%a',
        daemon.home.socket,
        dirname(daemon.home.socket),
        join(daemon.home.stateDir, 'token'),
        join(daemon.home.stateDir, 'deputy.db'),
      ],
      { encoding: 'utf8' },
    )
    const others = modes
      .split('\n')
      .filter(Boolean)
      .map(mode => Number.parseInt(mode, 8) & 0o077)
    expect(others).toEqual([0, 0, 0, 0])
  })
})
