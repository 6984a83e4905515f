import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { type Bridge, startBridge } from '../../support/mcp/bridge.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()

describe.skipIf(missing !== undefined)(`the cluster tools${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let lab: SshLab
  let directory: string
  let daemon: TestDaemon
  let project: string
  let bridge: Bridge

  const configure = (more: object = {}): void => {
    const config = {
      host: { allow: true },
      cluster: {
        localName: 'here',
        nodes: lab.nodes.map(({ id, address, port }, index) => ({
          id,
          host: address,
          port,
          user: lab.user,
          identity: lab.identity,
          aliases: [`node${index + 1}`],
          max_tasks: 4,
          capabilities: index === 1 ? ['special'] : [],
          specialties: index === 1 ? ['Compilation'] : [],
        })),
        ssh: { configFile: 'none', connectTimeout: 3 },
        thresholds: { cpu: 100, memory: 100, load: 10_000 },
        ...more,
      },
    }
    mkdirSync(join(directory, 'config'), { recursive: true })
    writeFileSync(join(directory, 'config/config.yaml'), JSON.stringify(config))
  }

  const call = async (name: string, args: object): Promise<Record<string, unknown>> => {
    const answer = await bridge.ask('tools/call', { name, arguments: args })
    const result = answer.result as { isError?: boolean; content: { text: string }[] } | undefined
    if (!result) throw new Error(JSON.stringify(answer))
    const text = result.content[0]!.text
    return result.isError ? { isError: true, text } : (JSON.parse(text) as Record<string, unknown>)
  }

  beforeAll(async () => {
    lab = await createSshLab({ nodes: 3 })
    directory = newHome()
    configure()
    daemon = await startDaemon({ directory })
    project = realpathSync(mkdtempSync(join(tmpdir(), 'dpw')))
    bridge = startBridge({ directory, cwd: project })
    await bridge.initialize()
  })
  afterAll(async () => {
    bridge?.process.kill('SIGKILL')
    await daemon?.kill()
    await lab?.close()
    if (directory) removeDirectory(directory)
    if (project) rmSync(project, { recursive: true })
  })

  it('are listed', async () => {
    const answer = await bridge.ask('tools/list')
    const names = (answer.result as { tools: { name: string }[] }).tools.map(tool => tool.name)
    expect(names).toEqual(
      expect.arrayContaining(['cluster_bash', 'cluster_status', 'offload_to', 'parallel_execute']),
    )
  })

  it('keep a simple command here and send a heavy one to a node', async () => {
    const simple = await call('cluster_bash', { command: 'echo "$((40 + 2))" | cat; echo oops >&2' })
    expect(simple).toMatchObject({
      success: true,
      executed_on: 'here',
      stdout: '42\n',
      stderr: 'oops\n',
      return_code: 0,
      auto_routed: false,
    })
    const heavy = await call('cluster_bash', {
      command: 'cd / && make -n -f /dev/null >/dev/null 2>&1; echo "$DEPUTY_LAB_NODE"',
    })
    expect(heavy).toMatchObject({ success: true, auto_routed: true, return_code: 0 })
    expect(heavy.executed_on).toMatch(/^n[123]$/)
    expect(heavy.routing).toContain('"make" is work for a node')
    expect(heavy.why).toContain('scored best')
    expect(typeof heavy.task_id).toBe('string')
  })

  it('report a failing command as a failure', async () => {
    const failed = await call('cluster_bash', { command: 'make -f /nonexistent', requires_os: 'linux' })
    expect(failed).toMatchObject({ success: false, return_code: 2 })
    expect(failed.stderr).toContain('/nonexistent')
  })

  it('never ignore a requirement', async () => {
    const special = await call('cluster_bash', { command: 'echo x', requires_capabilities: ['special'] })
    expect(special).toMatchObject({ success: true, executed_on: 'n2' })
    const impossible = await call('cluster_bash', { command: 'echo x', requires_os: 'windows' })
    expect(impossible.isError).toBe(true)
    expect(impossible.text).toContain('No node fits os=windows')
    const empty = await call('cluster_bash', { command: 'echo x', requires_os: ' ' })
    expect(empty.text).toContain("'requires_os'")
    for (const requires of [{ os: '' }, { colour: 'red' }])
      await expect(daemon.client.routeCommand({ command: 'echo x', requires })).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('requires'),
      })
    const stay = await call('cluster_bash', { command: 'echo x', requires_os: 'darwin', auto_route: false })
    expect(stay.text).toContain('auto_route')
  })

  it('prefer a node for its specialties, and say so', async () => {
    const command = 'true && make --version > /dev/null'
    const built = await call('cluster_bash', { command, requires_capabilities: ['special'] })
    expect(built.why).toMatch(/^n2 fits capability=special and scored best: .*"build" is its specialty\.$/)
    const other = await call('cluster_bash', { command: 'uptime', requires_capabilities: ['special'] })
    expect(other.why).not.toContain('specialty')
    expect((await call('offload_to', { command, node_id: 'n2' })).why).toBe('n2 was requested by name.')
  })

  it('refuse what the policy refuses, by its rule, here and there', async () => {
    for (const command of ['sudo rm -fr /', 'make; rm -rf "$NOPE"/*']) {
      const refused = await call('cluster_bash', { command })
      expect(refused.isError).toBe(true)
      expect(refused.text).toContain('destroy-root')
    }
    const refused = await call('offload_to', { command: ':(){ :|:& };:', node_id: 'n1' })
    expect(refused.text).toContain('fork-bomb')
  })

  it('send a command to a node by id or alias', async () => {
    expect(await call('offload_to', { command: 'echo $DEPUTY_JOB_ID', node_id: 'node3' })).toMatchObject({
      success: true,
      executed_on: 'n3',
      auto_routed: false,
    })
    const unknown = await call('offload_to', { command: 'true', node_id: 'node9' })
    expect(unknown.isError).toBe(true)
    expect(unknown.text).toContain("No node 'node9'")
  })

  it('run many commands at once, answer in order, and let one bad command stop no other', async () => {
    const commands = [
      ...Array.from({ length: 12 }, (_, i) => `echo out${i}; exit ${i === 5 ? 9 : 0}`),
      'rm -rf /',
      '',
    ]
    const batch = await call('parallel_execute', { commands })
    const results = batch.results as Record<string, unknown>[]
    expect(results).toHaveLength(14)
    for (let i = 0; i < 12; i++) {
      expect(results[i]).toMatchObject({
        command: commands[i],
        stdout: `out${i}\n`,
        success: i !== 5,
        return_code: i === 5 ? 9 : 0,
      })
    }
    expect(results[12]).toMatchObject({ success: false, error: expect.stringContaining('destroy-root') })
    expect(results[13]).toMatchObject({ success: false, error: 'The command is empty.' })
    const nowhere = await call('parallel_execute', { commands: ['echo x'], requires_os: 'windows' })
    expect(nowhere.results).toMatchObject([{ error: expect.stringContaining('No node fits os=windows') }])
    expect(batch.success).toBe(false)
    expect(new Set(results.slice(0, 12).map(result => result.executed_on)).size).toBeGreaterThan(1)
    const parent = await daemon.client.get(batch.task_id as string)
    expect(parent).toMatchObject({ status: 'failed', runtime: 'batch' })
    expect((await daemon.client.result(parent.job_id)).output).toContain('[6/14] failed (exit 9)')
  })

  it('take a directory along and bring its changes back', async () => {
    const work = mkdtempSync(join(project, 'sub-'))
    writeFileSync(join(work, 'in.txt'), 'one\n')
    const done = await call('offload_to', {
      command: 'cat in.txt; echo two >> in.txt',
      node_id: 'n1',
      cwd: work,
    })
    expect(done).toMatchObject({ success: true, stdout: 'one\n' })
    expect(done.changes).toContain('deputy patch')
    const result = await daemon.client.result(done.task_id as string)
    expect(result.patch?.size).toBeGreaterThan(0)
    expect(readFileSync(join(work, 'in.txt'), 'utf8')).toBe('one\n')
    const local = await call('cluster_bash', { command: 'pwd; cat in.txt', cwd: work })
    expect(local).toMatchObject({ executed_on: 'here', stdout: `${work}\none\n` })
    rmSync(work, { recursive: true })
  })

  it('take no directory along that the client may not read', async () => {
    const refused = { isError: true, text: expect.stringContaining('may not read the directory') }
    for (const cwd of ['/etc', directory, tmpdir()]) {
      expect(await call('offload_to', { command: 'ls', node_id: 'n1', cwd }), cwd).toMatchObject(refused)
      expect(await call('parallel_execute', { commands: ['ls'], cwd }), cwd).toMatchObject(refused)
    }
    await expect(
      daemon.client.routeCommand({ command: 'ls', node: 'n1', cwd: join(directory, 'state') }),
    ).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining("holds Deputy's own files") })
  })

  it('take a directory along for each command of a batch', async () => {
    const work = mkdtempSync(join(project, 'sub-'))
    writeFileSync(join(work, 'in.txt'), 'one\n')
    const done = await call('parallel_execute', { commands: ['cat in.txt'], cwd: work })
    expect(done).toMatchObject({ success: true, results: [{ stdout: 'one\n' }] })
  })

  it('show the state of every node', async () => {
    const status = await call('cluster_status', {})
    expect(status.local_node).toBe('here')
    const nodes = status.nodes as Record<string, Record<string, unknown>>
    expect(Object.keys(nodes)).toEqual(['here', 'n1', 'n2', 'n3'])
    expect(nodes.n1).toMatchObject({ status: 'healthy', reachable: true, running_tasks: 0, os: 'linux' })
    for (const key of ['cpu_percent', 'memory_percent', 'load_1m', 'cores', 'disk_percent']) {
      expect(typeof nodes.n1![key]).toBe('number')
      expect(typeof nodes.here![key]).toBe('number')
    }
  })

  it('give the task id at once to one who does not wait, and cancel for real', async () => {
    const started = await call('offload_to', { command: 'sleep 331', node_id: 'n2', wait_seconds: 0 })
    expect(started).toMatchObject({
      success: false,
      return_code: null,
      next: expect.stringContaining('get_job'),
    })
    const id = started.task_id as string
    const node = lab.nodes[1]!
    const processes = (): string => node.inside('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "; true')
    await waitFor(() => processes().includes('sleep 331'))
    // The process exists a moment before the daemon records that it runs.
    await waitFor(async () => (await daemon.client.get(id)).status === 'running')
    expect(await daemon.client.get(id)).toMatchObject({ where: 'n2' })
    await daemon.client.cancel(id)
    await waitFor(async () => (await daemon.client.get(id)).status === 'cancelled')
    expect(processes()).not.toContain('sleep 331')
  })

  it('find a command again after the daemon was killed', async () => {
    const node = lab.nodes[0]!
    const command = 'echo before; while [ ! -e "$HOME/go-on" ]; do sleep 0.05; done; echo after; exit 6'
    const started = await call('offload_to', { command, node_id: 'n1', wait_seconds: 0 })
    const id = started.task_id as string
    await waitFor(async () => (await daemon.client.get(id)).output_bytes > 0)
    bridge.process.kill('SIGKILL')
    await daemon.kill('SIGKILL')
    node.inside(`touch ${node.home}/go-on`)
    daemon = await startDaemon({ directory })
    bridge = startBridge({ directory })
    await bridge.initialize()
    await waitFor(async () => (await daemon.client.get(id)).completed_at !== null)
    const result = await daemon.client.result(id)
    expect(result).toMatchObject({ status: 'failed', exit_code: 6, output: 'before\nafter\n' })
    expect(result.executed_on?.node).toBe('n1')
  })
})
