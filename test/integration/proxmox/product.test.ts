import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { hasCurl } from '../../support/curl.ts'
import { CLI, newHome, removeDirectory, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { freePort } from '../../support/free-port.ts'
import { send } from '../../support/http/send.ts'
import { startEmulator } from '../../support/pve/emulator.ts'
import { fastGuests } from '../../support/pve/guests/fast.ts'

const never = new AbortController().signal
const startDaemon = useDaemons()

const PVE = fileURLToPath(new URL('../../../.cache/pve/test/support/pve/main.js', import.meta.url))

/** What `npm run pve` starts; its settings are what it prints. */
const startPve = async (...flags: string[]) => {
  const child = spawn(process.execPath, [PVE, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    err += chunk
  })
  const gone = new Promise(resolve => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await gone
  })
  await until(() => err.includes('Serving'), 'the emulated cluster serves', 30_000)
  const settings: Record<string, string> = Object.fromEntries(
    [...out.matchAll(/^export (\w+)='(.*)'$/gm)].map(match => [match[1]!, match[2]!]),
  )
  return { settings, kill: () => child.kill('SIGKILL') }
}

/** The configurations of the VMs that are ours, as Proxmox VE tells them. */
const machinesOf = async (settings: Record<string, string>): Promise<Record<string, unknown>[]> => {
  const proxmox = createProxmox(parseSettings(settings))
  try {
    const rows = await proxmox.get<{ vmid: number; node: string; template?: number }[]>(
      '/cluster/resources',
      {
        type: 'vm',
      },
    )
    return await Promise.all(
      rows
        .filter(row => row.vmid >= 100_000)
        .map(row => proxmox.get<Record<string, unknown>>(`/nodes/${row.node}/qemu/${row.vmid}/config`)),
    )
  } finally {
    await proxmox.close()
  }
}

/** One that has ended but that nobody has asked about yet is not alive. */
const isAlive = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

describe.skipIf(!hasCurl)('the product with an emulated cluster', () => {
  it('runs a job on it, survives kill -9 of the daemon, and leaves nothing behind', async () => {
    const settings = { ...(await startPve()).settings, CALLBACK_PORT: String(await freePort()) }
    const directory = newHome()
    const first = await startDaemon({ directory, env: settings })
    const { job_id } = await first.client.submit({
      task: 'for i in $(seq 1 40); do echo line $i; sleep 0.1; done',
      runtime: 'proxmox',
    })
    await until(async () => (await first.client.get(job_id)).output_bytes > 20, 'it prints', 30_000)
    await first.kill('SIGKILL')
    const second = await startDaemon({ directory, env: settings })
    await until(
      async () => ['success', 'failed'].includes((await second.client.get(job_id)).status),
      'it ends',
      40_000,
    )
    const result = await second.client.result(job_id, {})
    expect(result.status, JSON.stringify(result.error)).toBe('success')
    expect(result.output).toBe(Array.from({ length: 40 }, (_, i) => `line ${i + 1}\n`).join(''))
    await until(async () => (await second.client.machines()).length === 0, 'the machine is gone', 30_000)
  })

  it('runs a job in the machine that was booting when the daemon was killed', async () => {
    const emulator = await startEmulator({ guests: fastGuests({ bootMs: 3000 }) })
    onTestFinished(() => emulator.close())
    const env = {
      ...emulator.env(),
      ...{ PROXMOX_POOL: 'jobs', PROXMOX_SEED_STORAGE: 'seeds' },
      ...{ CALLBACK_HOST: '127.0.0.1', CALLBACK_PORT: String(await freePort()) },
    }
    const directory = newHome()
    const first = await startDaemon({ directory, env })
    const { job_id } = await first.client.submit({ task: 'echo adopted', runtime: 'proxmox' })
    const machines = () => [...emulator.state.vms.values()].filter(vm => vm.config.template !== '1')
    await until(() => machines().some(vm => vm.status === 'running'), 'it boots', 30_000)
    await first.kill('SIGKILL')
    const second = await startDaemon({ directory, env })
    const view = await second.client.wait(job_id, { timeoutMs: 50_000, signal: never })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
    expect((await second.client.result(job_id, {})).output).toBe('adopted\n')
    expect(emulator.requests.filter(line => /POST .*\/clone/.test(line))).toHaveLength(1)
    await until(() => machines().length === 0, 'the machine is gone', 30_000)
  })

  it('keeps secrets out of the output, and all else in it, when the daemon is killed between two halves', async () => {
    const pve = await startPve()
    const directory = newHome()
    const settings = { ...pve.settings, CALLBACK_PORT: String(await freePort()) }
    mkdirSync(join(directory, 'config'), { recursive: true })
    writeFileSync(
      join(directory, 'config/config.yaml'),
      JSON.stringify({
        secrets: { DEPLOY_KEY: 'env:KEY' },
        // The secret is the agent's: the manifest does not name it.
        agents: { keyed: { argv: ['bash', '-c', '{task}'], secrets: ['DEPLOY_KEY'] } },
      }),
    )
    const first = await startDaemon({ directory, env: { ...settings, KEY: 'hunter2hunter2' } })
    const go = join(directory, 'go')
    const { job_id } = await first.client.submit({
      task: `printf 'a hunter2h'; printf 'b hunter' >&2; while [ ! -e ${go} ]; do sleep 0.1; done; printf 'unter2 c\n'; printf 'man\n' >&2`,
      agentType: 'keyed',
      runtime: 'proxmox',
    })
    // What may be the beginning of the secret is held back.
    await until(async () => (await first.client.get(job_id)).output_bytes === 4, 'both are held', 30_000)
    await first.kill('SIGKILL')
    // Its source has changed meanwhile: what the job was given counts.
    const second = await startDaemon({ directory, env: { ...settings, KEY: 'another value' } })
    writeFileSync(go, '')
    await until(async () => (await second.client.get(job_id)).status === 'success', 'it ends', 40_000)
    const { pieces } = await second.client.output(job_id, { signal: never })
    const text = (stream: string) =>
      pieces
        .map(one => ('data' in one && one.stream === stream ? Buffer.from(one.data).toString() : ''))
        .join('')
    expect(text('stdout')).toBe('a [redacted] c\n')
    expect(text('stderr')).toBe('b hunterman\n')
    const { status } = spawnSync('grep', ['-rqaF', 'hunter2hunter2', directory])
    expect(status, 'no file of the daemon holds the secret').toBe(1)
  })

  it('counts the calls of machines, and ends the guests of a cluster that is killed', async () => {
    const pve = await startPve()
    const directory = newHome()
    const port = await freePort()
    // Machines beat four times in that.
    const settings = { ...pve.settings, CALLBACK_PORT: String(port), HEARTBEAT_THRESHOLD_SECONDS: '30' }
    const daemon = await startDaemon({ directory, env: settings })
    const { job_id } = await daemon.client.submit({ task: 'echo $$; sleep 600', runtime: 'proxmox' })
    const output = async () => (await daemon.client.output(job_id, { signal: never })).pieces
    await until(async () => (await output()).length > 0, 'it prints', 30_000)
    const [piece] = await output()
    const pid = Number(piece && 'data' in piece && Buffer.from(piece.data).toString())
    expect(isAlive(pid)).toBe(true)

    const stranger = await fetch(`http://127.0.0.1:${port}/guest/v1/work`)
    expect([401, 503]).toContain(stranger.status)
    const counts = async () => {
      const { text } = await send({ socketPath: daemon.home.socket }, { path: '/metrics' })
      return (kind: string, status: number): number =>
        Number(text.match(`deputy_callbacks_total\\{kind="${kind}",status="${status}"\\} (\\d+)`)?.[1] ?? 0)
    }
    await until(async () => (await counts())('heartbeat', 200) > 0, 'it beats', 30_000)
    const count = await counts()
    expect(count('work', 200)).toBe(1)
    expect(count('output', 200)).toBeGreaterThan(0)
    expect(count('work', stranger.status)).toBe(1)

    pve.kill()
    await until(() => !isAlive(pid), 'the job in the guest is gone', 20_000)
  })

  it('tries the way back with a machine when doctor is asked to, also when the asker has no patience', async () => {
    const pve = await startPve()
    const directory = newHome()
    const port = await freePort()
    const daemon = await startDaemon({ directory, env: { ...pve.settings, CALLBACK_PORT: String(port) } })
    const doctor = (...flags: string[]) =>
      spawn(process.execPath, [CLI, 'doctor', ...flags], {
        env: { PATH: process.env.PATH, HOME: directory, DEPUTY_HOME: directory },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    const hasty = doctor('--probe')
    const left = new Promise(resolve => hasty.once('exit', resolve))
    await until(async () => (await daemon.client.machines()).length > 0, 'a machine is made', 20_000)
    hasty.kill('SIGINT')
    await left
    await until(async () => (await daemon.client.machines()).length === 0, 'it is gone', 30_000)

    const patient = doctor('--probe')
    let out = ''
    patient.stdout.on('data', chunk => {
      out += chunk
    })
    await new Promise(resolve => patient.once('exit', resolve))
    expect(out).toMatch(/✓ callback: VM \d+ on pve\d was heard of through/)
    expect(out).toContain(`http://127.0.0.1:${port} after`)
    expect(await daemon.client.machines()).toEqual([])
  })

  it('cancels a command that prints nothing before the VM is stopped', async () => {
    const pve = await startPve()
    const directory = newHome()
    const port = await freePort()
    const daemon = await startDaemon({ directory, env: { ...pve.settings, CALLBACK_PORT: String(port) } })
    const { job_id } = await daemon.client.submit({
      task: 'trap "echo asked; exit 0" TERM; echo up; sleep 100 & wait',
      runtime: 'proxmox',
    })
    await until(async () => (await daemon.client.get(job_id)).output_bytes > 0, 'it runs', 30_000)
    await daemon.client.cancel(job_id)
    await until(async () => (await daemon.client.get(job_id)).status === 'cancelled', 'it is over', 30_000)
    expect((await daemon.client.result(job_id, {})).output).toBe('up\nasked\n')
    await until(async () => (await daemon.client.machines()).length === 0, 'it is gone', 30_000)
  })

  it('takes every setting of the server it replaces, and says which is of no use any more', async () => {
    const pve = await startPve()
    const directory = newHome()
    const port = await freePort()
    const settings = {
      ...pve.settings,
      CALLBACK_PORT: String(port),
      CALLBACK_HOST: '127.0.0.1',
      PROXMOX_ADMIN_PATH: './node_modules/mcp-proxmox-admin/dist/index.js',
      DEFAULT_VM_TEMPLATE: 'agent-template',
      DEFAULT_TIMEOUT: '77',
      DEFAULT_CPU: '3',
      DEFAULT_MEMORY: '640M',
      DEFAULT_DISK: '14G',
      HEARTBEAT_THRESHOLD_SECONDS: '45',
      CLEANUP_INTERVAL_SECONDS: '11',
    }
    const daemon = await startDaemon({ directory, env: settings })
    expect(daemon.log()).toContain('PROXMOX_ADMIN_PATH is no longer needed')
    const explained = await daemon.client.config()
    const value = (at: string) => explained.find(setting => setting.path === at)?.value
    expect([
      value('callback.port'),
      value('callback.host'),
      value('proxmox.template'),
      value('defaults.timeout'),
      value('supervision.heartbeat'),
      value('supervision.cleanup'),
    ]).toEqual([port, '127.0.0.1', 'agent-template', 77, 45, 11])
    const { job_id } = await daemon.client.submit({ task: 'sleep 60', runtime: 'proxmox' })
    await until(async () => (await daemon.client.get(job_id)).status === 'running', 'it runs', 30_000)
    expect(await daemon.client.get(job_id)).toMatchObject({ timeout_seconds: 77 })
    const [vm] = await machinesOf(pve.settings)
    expect(vm).toMatchObject({ cores: 3, memory: '640', scsi0: expect.stringContaining('size=14G') })
    await daemon.client.cancel(job_id)
    const doctor = spawnSync(process.execPath, [CLI, 'doctor'], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: directory, DEPUTY_HOME: directory, ...settings },
    })
    expect(doctor.stdout).toMatch(/! PROXMOX_ADMIN_PATH: is no longer needed/)
    expect(doctor.stdout).toMatch(
      /✓ certificate: SHA-256 fingerprint (?:[0-9A-F]{2}:){31}[0-9A-F]{2}, valid until/,
    )
    await until(async () => (await daemon.client.machines()).length === 0, 'it is gone', 30_000)
  })

  it('lets a command that is cancelled in its silence say its last words, soon', async () => {
    const settings = { ...(await startPve()).settings, CALLBACK_PORT: String(await freePort()) }
    const directory = newHome()
    const daemon = await startDaemon({ directory, env: settings })
    const { job_id } = await daemon.client.submit({
      task: 'trap "echo last words; exit 7" TERM; echo ready; sleep 300 & wait',
      runtime: 'proxmox',
    })
    await until(async () => (await daemon.client.get(job_id)).output_bytes > 0, 'it runs', 30_000)
    expect(await daemon.client.get(job_id)).toMatchObject({
      where: expect.stringMatching(/^VM \d+ on pve\d$/),
    })
    await daemon.client.cancel(job_id)
    await until(async () => (await daemon.client.get(job_id)).status === 'cancelled', 'it ends', 30_000)
    expect(await daemon.client.result(job_id, {})).toMatchObject({
      output: 'ready\nlast words\n',
      exit_code: 7,
    })
  })

  it('shows what a job waits for while the cluster does not answer', async () => {
    const directory = newHome()
    const env = {
      PROXMOX_HOST: `127.0.0.1:${await freePort()}`,
      PROXMOX_USER: 'deputy@pve',
      PROXMOX_TOKEN_NAME: 'jobs',
      PROXMOX_TOKEN_VALUE: '00000000-0000-0000-0000-000000000000',
    }
    const daemon = await startDaemon({ directory, env })
    const { job_id } = await daemon.client.submit({ task: 'true', runtime: 'proxmox' })
    await until(async () => (await daemon.client.get(job_id)).progress !== null, 'it tells', 30_000)
    expect((await daemon.client.get(job_id)).progress).toMatch(
      /^waiting: Proxmox VE did not answer .*ECONNREFUSED/,
    )
    await daemon.client.cancel(job_id)
    await until(async () => (await daemon.client.get(job_id)).status === 'cancelled', 'it ends', 30_000)
  })

  it('says what is wrong with the settings of a cluster, and still runs other jobs', async () => {
    const directory = newHome()
    const daemon = await startDaemon({ directory, env: { PROXMOX_HOST: 'pve1', PROXMOX_USER: 'root' } })
    const runtimes = await daemon.client.doctor()
    expect(runtimes.find(runtime => runtime.runtime === 'proxmox')).toMatchObject({
      ready: false,
      checks: [{ status: 'failed', message: expect.stringContaining('credentials') }],
    })
    await expect(daemon.client.submit({ task: 'true', runtime: 'proxmox' })).rejects.toThrow(/credentials/)
  })
})

it('emulates as many nodes as are asked for', async () => {
  const { settings } = await startPve('--nodes', '3', '--guests', 'none')
  expect(settings.PROXMOX_HOST?.split(',')).toHaveLength(3)
  const proxmox = createProxmox(parseSettings(settings))
  onTestFinished(() => proxmox.close())
  const nodes = await proxmox.get<{ node: string }[]>('/nodes')
  expect(nodes.map(({ node }) => node).sort()).toEqual(['pve1', 'pve2', 'pve3'])
  const port = settings.PROXMOX_HOST!.split(',')[0]!.split(':')[1]!
  const second = spawnSync(process.execPath, [PVE, '--port', port], { encoding: 'utf8' })
  expect(second).toMatchObject({ status: 2, stdout: '' })
  expect(second.stderr).toContain(`Port ${port} is taken. Choose another --port`)
})

it('prints how to prepare a cluster without reaching one', () => {
  const home = newHome()
  onTestFinished(() => removeDirectory(home))
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [CLI, 'proxmox', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, DEPUTY_HOME: home },
    })
  expect(run('setup', '--template', '9000', '--seeds', 'seeds')).toMatch(
    /pveum acl modify \/storage\/seeds --tokens 'deputy@pve!deputy'/,
  )
  expect(run('template')).toContain('qm template 9000')
})
