import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CLI, newHome, removeDirectory, startDaemon } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import {
  type Bridge,
  bridgeEnv,
  daemonOf,
  envelope,
  isAlive,
  startBridge,
  stopDaemonOf,
  talkTo,
} from '../../support/mcp/bridge.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const LIST_JOBS = { name: 'list_jobs', arguments: {} }

let directory: string
let bridges: Bridge[]

beforeEach(() => {
  directory = newHome()
  bridges = []
})

afterEach(async () => {
  for (const bridge of bridges) bridge.process.kill('SIGKILL')
  await Promise.all(bridges.map(bridge => bridge.ended))
  await stopDaemonOf(directory)
  removeDirectory(directory)
})

const open = (settings: Partial<Parameters<typeof startBridge>[0]> = {}): Bridge => {
  const bridge = startBridge({ directory, ...settings })
  bridges.push(bridge)
  return bridge
}

/** Waits for a daemon that answers: without one there is no pid, and a made-up one must never reach a signal. */
const daemonPid = async (): Promise<number> => {
  let pid: number | undefined
  await until(
    async () => {
      pid = (await daemonOf(directory))?.pid
      return pid !== undefined
    },
    'a daemon that answers',
    30_000,
  )
  return pid!
}

describe('the bridge', () => {
  it('starts a daemon when none runs, and leaves it running when it goes', async () => {
    const bridge = open()
    expect((await bridge.initialize()).result).toMatchObject({ serverInfo: { name: 'deputy' } })
    const pid = await daemonPid()
    bridge.process.stdin?.end()
    expect(await bridge.ended).toBe(0)
    expect(isAlive(pid)).toBe(true)
  })

  it('answers what it was asked before its input ended', async () => {
    const bridge = open()
    const answer = bridge.ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'echo', version: '1' },
    })
    bridge.process.stdin?.end()
    expect((await answer).result).toMatchObject({ protocolVersion: '2025-06-18' })
    expect(await bridge.ended).toBe(0)
  })

  it('speaks the current revision as well', async () => {
    const bridge = open()
    const { result } = await bridge.ask('server/discover', envelope())
    expect(result).toMatchObject({ supportedVersions: expect.arrayContaining(['2026-07-28']) })
    expect((await bridge.ask('tools/list', envelope())).result).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: 'submit_job' })]),
    })
  })

  it('passes on which tools its user wants', async () => {
    const bridge = open({ args: ['--read-only'], env: { DEPUTY_TOOLSETS: 'jobs' } })
    await bridge.initialize()
    const { result } = await bridge.ask('tools/list')
    const names = (result as { tools: { name: string }[] }).tools.map(tool => tool.name)
    expect(names).toContain('get_job_status')
    expect(names).not.toContain('submit_job')
  })

  it('ends with a message when it was given a toolset that does not exist', async () => {
    const bridge = open({ args: ['--toolsets', 'default,proxmx'] })
    expect(await bridge.ended).toBe(2)
    expect(bridge.stderr()).toContain("No toolset 'proxmx'. Known: default, all, jobs")
  })

  it('goes on although it was given an option it does not know', async () => {
    const bridge = open({ args: ['--verbose'] })
    await bridge.initialize()
    expect(bridge.stderr()).toContain("ignored unknown option '--verbose'")
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('ends on %s', async signal => {
    const bridge = open()
    await bridge.initialize()
    bridge.process.kill(signal)
    expect(await bridge.ended).toBe(0)
  })

  it('ends when nobody reads its output any more', async () => {
    const bridge = open()
    await bridge.initialize()
    bridge.process.stdout?.destroy()
    bridge.send({ id: 'x', method: 'tools/list' })
    bridge.send({ id: 'y', method: 'tools/list' })
    expect(await bridge.ended).toBe(0)
  })

  it('ends when its parent dies without closing anything', async () => {
    // The shell is the client; the pipes stay open in this process, so only the death itself can be noticed.
    const shell = spawn(
      'sh',
      ['-c', 'exec 3<&0; "$0" "$1" mcp <&3 & echo "{\\"pid\\":$!}"; wait', process.execPath, CLI],
      {
        env: bridgeEnv(directory),
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    )
    const bridge = talkTo(shell)
    const { pid } = (await bridge.next('the pid', message => 'pid' in message)) as unknown as { pid: number }
    await bridge.initialize()
    shell.kill('SIGKILL')
    await until(async () => !isAlive(pid), 'the orphan to end', 15_000)
  })

  it('tells a client whose line is no JSON-RPC, and goes on', async () => {
    const bridge = open()
    await bridge.initialize()
    bridge.process.stdin?.write('hello?\n\n')
    expect(await bridge.next('the complaint', message => message.error?.code === -32700)).toMatchObject({
      id: null,
    })
    expect(await bridge.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
  })

  it('carries large messages both ways', async () => {
    const bridge = open()
    await bridge.initialize()
    const text = 'ü'.repeat(4_000_000)
    const { result } = await bridge.ask('tools/call', {
      name: 'submit_job',
      arguments: { manifest: { task: 'true', files: [{ path: 'a', text }], nonsense: true } },
    })
    expect(JSON.stringify(result)).toContain("unknown key 'nonsense'")
  })

  it('stays and tells why when no daemon can be started', async () => {
    writeFileSync(join(directory, 'state'), 'a file where a directory should be')
    const bridge = open()
    const { error } = await bridge.initialize()
    expect(error?.message).toMatch(/state/)
    expect(bridge.process.exitCode).toBeNull()
    expect((await bridge.ask('tools/list')).error).toBeDefined()
  })
})

describe('the bridge, when its daemon is killed', () => {
  const written = (pid: number): number =>
    Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])

  /** A request that is certainly in flight: the bridge has written it, and the daemon stands still. */
  const loseInFlight = async (bridge: Bridge, params: object) => {
    const pid = await daemonPid()
    process.kill(pid, 'SIGSTOP')
    const before = written(bridge.process.pid!)
    const { answer } = bridge.start('tools/call', params)
    const size = JSON.stringify(params).length
    await until(async () => written(bridge.process.pid!) >= before + size, 'the bridge to pass it on')
    process.kill(pid, 'SIGKILL')
    return { answer: await answer, pid }
  }

  it('says to call again, and the next call finds a new daemon', async () => {
    const bridge = open()
    await bridge.initialize()
    const { answer, pid } = await loseInFlight(bridge, LIST_JOBS)
    expect(answer.error).toMatchObject({ code: -32603, message: expect.stringContaining('Call again') })
    expect(await bridge.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
    expect(await daemonPid()).not.toBe(pid)
    // What was opened again behind the client's back stays there.
    expect(bridge.messages().filter(message => String(message.id).startsWith('deputy-bridge'))).toEqual([])
  })

  it('loses no job: the call that waited for it can be repeated', async ({ skip }) => {
    const bridge = open()
    const { result } = await bridge.initialize()
    skip(!String(result?.instructions).includes('Runtimes ready'), 'no runtime is ready on this machine')
    const call = async (name: string, args: object) => {
      const answer = await bridge.ask('tools/call', { name, arguments: args })
      return (answer.result?.structuredContent ?? {}) as Record<string, unknown>
    }
    const task = 'echo begun; sleep 3; echo survived'
    const { job_id } = await call('submit_job', { manifest: { task } })
    const waiting = bridge.start('tools/call', {
      name: 'get_job_status',
      arguments: { job_id, wait_seconds: 50 },
      _meta: { progressToken: 'p' },
    })
    await bridge.next(
      'progress of the running job',
      ({ method, params }) =>
        method === 'notifications/progress' && String(params?.message).includes('running'),
    )
    process.kill(await daemonPid(), 'SIGKILL')
    expect((await waiting.answer).error?.message).toContain('Call again')
    expect(await call('get_job_status', { job_id, wait_seconds: 50 })).toMatchObject({ status: 'success' })
    expect(await call('get_job_result', { job_id })).toMatchObject({
      output: 'begun\nsurvived\n',
      exit_code: 0,
    })
  })

  it('goes on for clients of the current revision too', async () => {
    const bridge = open()
    await bridge.ask('server/discover', envelope())
    await loseInFlight(bridge, envelope(LIST_JOBS))
    expect(await bridge.ask('tools/call', envelope(LIST_JOBS))).toHaveProperty('result')
  })

  it('keeps the subscriptions of an older client', async () => {
    const bridge = open()
    await bridge.initialize()
    const uri = 'job://00000000-0000-7000-8000-000000000000'
    await bridge.ask('resources/subscribe', { uri })
    process.kill(await daemonPid(), 'SIGKILL')
    await bridge.next(
      'the news after the gap',
      message => message.method === 'notifications/resources/updated' && message.params?.uri === uri,
    )
  })

  it('keeps the subscriptions of a newer client, acknowledged once', async () => {
    const bridge = open()
    await bridge.ask('server/discover', envelope())
    const uri = 'job://00000000-0000-7000-8000-000000000000'
    bridge.send({
      id: 'listen',
      method: 'subscriptions/listen',
      params: envelope({ notifications: { resourceSubscriptions: [uri] } }),
    })
    const acknowledged = (message: { method?: string }) =>
      message.method === 'notifications/subscriptions/acknowledged'
    await bridge.next('the acknowledgement', acknowledged)
    process.kill(await daemonPid(), 'SIGKILL')
    await bridge.next(
      'the news after the gap',
      message => message.method === 'notifications/resources/updated',
    )
    expect(await bridge.ask('tools/call', envelope(LIST_JOBS))).toHaveProperty('result')
    expect(bridge.messages().filter(acknowledged)).toHaveLength(1)
  })

  it('survives it again and again', async () => {
    const bridge = open()
    await bridge.initialize()
    for (let i = 0; i < 3; i++) {
      process.kill(await daemonPid(), 'SIGKILL')
      // Only the bridge starts the next one, so it has noticed.
      await daemonPid()
      expect(await bridge.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
    }
  })
})

describe('the bridge, when its daemon is stopped on purpose', () => {
  it('starts no other until its client asks for something', async () => {
    const bridge = open()
    await bridge.initialize()
    // What the client has sent has arrived: a message that meets the end of the daemon starts the next one.
    expect(await bridge.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
    const pid = await daemonPid()
    process.kill(pid, 'SIGTERM')
    await until(async () => bridge.stderr() !== '', 'the bridge to notice', 20_000)
    expect(bridge.stderr()).toBe('deputy mcp: the daemon was stopped\n')
    await until(async () => !isAlive(pid), 'the daemon to end', 20_000)
    expect(await daemonOf(directory)).toBeUndefined()
    expect(await bridge.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
    expect(bridge.messages().filter(message => message.method?.includes('stopping'))).toEqual([])
  })

  it('starts no other for a notification', async () => {
    const bridge = open()
    await bridge.initialize()
    expect(await bridge.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
    const pid = await daemonPid()
    process.kill(pid, 'SIGTERM')
    await until(async () => bridge.stderr() !== '', 'the bridge to notice', 20_000)
    await until(async () => !isAlive(pid), 'the daemon to end', 20_000)
    bridge.send({ method: 'notifications/roots/list_changed' })
    bridge.send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    // The bridge ends when nothing is pending: it would wait for a daemon that it starts.
    bridge.process.stdin?.end()
    expect(await bridge.ended).toBe(0)
    expect(bridge.stderr()).toBe('deputy mcp: the daemon was stopped\n')
    const log = readFileSync(join(directory, 'state/daemon.log'), 'utf8')
    expect(log.split('\n').filter(line => line.includes('"msg":"ready"'))).toHaveLength(1)
  })
})

describe('several bridges', () => {
  it('that start at once share one daemon', async () => {
    const three = [open(), open(), open()]
    const answers = await Promise.all(three.map(bridge => bridge.initialize()))
    for (const { result } of answers) expect(result).toMatchObject({ serverInfo: { name: 'deputy' } })
    const pid = await daemonPid()
    const log = readFileSync(join(directory, 'state/daemon.log'), 'utf8')
    const ready = log.split('\n').filter(line => line.includes('"msg":"ready"'))
    expect(ready).toHaveLength(1)
    expect(ready[0]).toContain(`"pid":${pid}`)
  })

  it('use a daemon that somebody started for himself', async () => {
    const daemon = await startDaemon({ directory })
    const bridge = open()
    await bridge.initialize()
    expect(await daemonPid()).toBe(daemon.pid)
    await daemon.kill('SIGTERM')
  })

  it('replace an older daemon that has nothing to do', async () => {
    const older = join(directory, 'older')
    mkdirSync(older)
    cpSync(join(ROOT, 'dist'), join(older, 'dist'), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(older, 'node_modules'))
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    writeFileSync(join(older, 'package.json'), JSON.stringify({ ...manifest, version: '0.0.1' }))
    const first = open({ cli: join(older, 'dist/cli/main.js') })
    await first.initialize()
    expect(await daemonOf(directory)).toMatchObject({ version: '0.0.1' })
    const second = open()
    await second.initialize()
    expect(await daemonOf(directory)).toMatchObject({ version: manifest.version })
    // The older bridge lost its daemon and goes on with the newer one.
    expect(await first.ask('tools/call', LIST_JOBS)).toHaveProperty('result')
  })
})
