import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { GuestDriver } from '../../src/dev/pve/guests/driver.ts'
import { qemuGuests } from '../../src/dev/pve/guests/qemu/index.ts'
import { createProxmox, type Proxmox } from '../../src/proxmox/client.ts'
import { parseSettings } from '../../src/proxmox/settings.ts'
import type { ProxmoxRuntimeOptions } from '../../src/runtimes/proxmox/options.ts'
import { until } from '../support/engine.ts'
import { type Lab, openLab } from '../support/proxmox-runtime.ts'
import { requireOrSkip } from '../support/require.ts'
import { CALLBACK, consoleTail, findImage, freePort } from '../support/vm.ts'

const { image, missing } = findImage()
const MINUTES = 60_000

describe.skipIf(requireOrSkip(missing))('machines that boot for real', () => {
  const closers: (() => Promise<unknown>)[] = []

  const makeDirectory = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'vm-'))
    closers.push(async () => rmSync(directory, { recursive: true, force: true }))
    return directory
  }

  const guestsFor = (directory: string, port: number | undefined): GuestDriver =>
    qemuGuests({
      image: image!,
      directory,
      passages: port === undefined ? [] : [{ guest: CALLBACK, target: { host: '127.0.0.1', port } }],
    })

  /** Cluster, runtime and engine; machines reach the daemon and nothing else. */
  const openDeputy = async (more: Partial<ProxmoxRuntimeOptions>) => {
    const port = await freePort()
    const directory = makeDirectory()
    const lab: Lab = await openLab({
      emulator: { guests: guestsFor(directory, more.channel === 'agent' ? undefined : port) },
    })
    closers.push(lab.close)
    const url = `http://${CALLBACK.host}:${CALLBACK.port}`
    const engine = await lab.open(
      lab.makeRuntime({
        callback: { host: '127.0.0.1', port, url },
        defaults: { cpu: 1, memory: 2 ** 30, disk: undefined },
        heartbeatSeconds: 5,
        ...more,
      }),
      {
        config: config => {
          config.supervision.provisioning = 300
        },
      },
    )
    return { lab, engine, directory }
  }

  type RealDeputy = Awaited<ReturnType<typeof openDeputy>>

  const run = async ({ engine, directory }: RealDeputy, manifest: object) => {
    const { job_id } = await engine.deputy.submit({ runtime: 'proxmox', retries: 0, ...manifest }, 'test')
    const view = await engine.deputy.wait(job_id, {
      timeoutMs: 5 * MINUTES,
      signal: AbortSignal.timeout(6 * MINUTES),
    })
    const result = await engine.deputy.result(job_id, {})
    const vmids = readdirSync(directory).map(Number)
    const told = () =>
      JSON.stringify(
        { error: view.error, consoles: vmids.map(vmid => consoleTail(directory, vmid)) },
        null,
        1,
      )
    process.stderr.write(`phases in ms: ${JSON.stringify(result.phases)}\n`)
    return { job_id, result, told }
  }

  const expectNothingLeft = async ({ lab, directory }: RealDeputy): Promise<void> => {
    const left = () => [lab.machines(), lab.seeds(), readdirSync(directory)].map(one => one.length)
    await until(() => left().every(count => count === 0), 'the machine is destroyed', MINUTES)
    expect(machinesRunning(directory)).toEqual([])
  }

  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })

  it('run a job that its seed image brought, shut in, and tell how it ended', async () => {
    // A server of the host's own, which no job may reach.
    const private_ = createServer((_, response) => response.end('secret'))
    await new Promise<void>(resolve => private_.listen(0, '127.0.0.1', resolve))
    closers.push(() => new Promise(resolve => private_.close(resolve)))
    const { port } = private_.address() as AddressInfo
    const script = `
      id -un
      cat /var/lib/cloud/instance/datasource
      nproc
      df --output=size -B1 / | tail -1
      curl -s -m 3 http://10.0.2.2:${port}/ || echo shut in
      curl -s -m 9 http://${CALLBACK.host}:${CALLBACK.port}/health; echo
      printf 'caf\\303\\251 %s\\n' "$GREETING"
      mkdir out; echo made in a machine > out/report.txt
      echo complaint >&2
      exit 3`
    const deputy = await openDeputy({ injection: 'iso' })
    const { result, told, job_id } = await run(deputy, {
      task: 'tell about yourself',
      agentType: 'custom',
      agent: { command: ['/bin/sh', '-c', script] },
      env: { GREETING: `it's "fine" $HOME` },
      artifacts: ['out/**'],
      resources: { disk: '10G' },
      timeout: 200,
    })
    expect(result.exit_code, told()).toBe(3)
    expect(result.status).toBe('failed')
    // The two streams are in order each, but not among themselves.
    const lines = result.output.split('\n').filter(line => line !== 'complaint')
    expect(lines[0]).toBe('deputy')
    expect(lines[1]).toContain('DataSourceNoCloud [seed=/dev/sr0]')
    expect(lines[2]).toBe('1')
    // The file system has grown into the disk that the job asked for.
    expect(Number(lines[3])).toBeGreaterThan(9 * 2 ** 30)
    expect(lines.slice(4)).toEqual(['shut in', '{"status":"ok"}', `café it's "fine" $HOME`, ''])
    expect(result.output).toContain('complaint\n')
    const artifact = await deputy.engine.deputy.openArtifact(job_id, 'out/report.txt')
    const pieces: Uint8Array[] = []
    for await (const piece of artifact.read()) pieces.push(piece)
    expect(Buffer.concat(pieces).toString()).toBe('made in a machine\n')
    await expectNothingLeft(deputy)
  })

  it('fetch their seed from the address in their SMBIOS', async () => {
    const deputy = await openDeputy({ injection: 'http' })
    const { result, told } = await run(deputy, {
      task: 'where are you from',
      agentType: 'custom',
      agent: { command: ['cat', '/var/lib/cloud/instance/datasource'] },
      timeout: 200,
    })
    expect(result.status, told()).toBe('success')
    expect(result.output).toMatch(
      /DataSourceNoCloudNet \[seed=dmi,http:\/\/10\.0\.2\.100:8765\/seed\/[\w-]+\/\]/,
    )
    await expectNothingLeft(deputy)
  })

  it('work without any network, through their guest agent, and switch off at the power button', async () => {
    const deputy = await openDeputy({ injection: 'agent', channel: 'agent' })
    const first = await run(deputy, {
      task: 'are you alone',
      agentType: 'custom',
      agent: {
        command: ['/bin/sh', '-c', `id -un; curl -s -m 3 http://${CALLBACK.host}:${CALLBACK.port}/; exit 4`],
      },
      lifecycle: 'persistent',
      timeout: 200,
    })
    expect(first.result.exit_code, first.told()).toBe(4)
    expect(first.result.output).toBe('deputy\n')

    const machine = first.result.machine_id!
    const second = await run(deputy, {
      task: 'again',
      agentType: 'custom',
      agent: { command: ['/bin/sh', '-c', 'seq 100000 | sha256sum'] },
      machine,
      timeout: 200,
    })
    expect(second.result.status, second.told()).toBe('success')
    const numbers = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('')
    expect(second.result.output).toBe(`${sha256(Buffer.from(numbers))}  -\n`)

    const client = createProxmox(parseSettings(deputy.lab.emulator.env()))
    closers.push(() => client.close())
    const { vmid, node } = deputy.lab.machines()[0]!
    const vm = `/nodes/${node}/qemu/${vmid}`
    await checkAgent(client, `${vm}/agent`)

    const upid = await client.post<string>(`${vm}/status/shutdown`, { timeout: 150 })
    await client.waitTask(upid, { deadline: Date.now() + 3 * MINUTES })
    expect(await client.get(`${vm}/status/current`)).toMatchObject({ status: 'stopped' })
    expect(machinesRunning(deputy.directory)).toEqual([])
    await deputy.engine.deputy.destroyMachine(machine)
    await expectNothingLeft(deputy)
  })

  it('end with the process that started them, even when that is killed', async () => {
    const home = makeDirectory()
    const module = fileURLToPath(new URL('../../dist/dev/pve/guests/qemu/index.js', import.meta.url))
    const program = `
      const { qemuGuests } = await import(${JSON.stringify(module)})
      const guests = qemuGuests(${JSON.stringify({ image, directory: home })})
      const spec = { vmid: 1, node: 'n', config: { memory: '256' }, cdroms: [], poweredOff() {} }
      await guests.start(spec)
      console.error('started')
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let words = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      words += text
    })
    await until(() => words.includes('started') || child.exitCode !== null, 'QEMU runs', MINUTES)
    expect(machinesRunning(home), words).toHaveLength(1)
    child.kill('SIGKILL')
    await until(() => machinesRunning(home).length === 0, 'QEMU is gone')
  })
})

/** The calls of the agent as a client of Proxmox VE sees them, with the encodings that it has. */
const checkAgent = async (client: Proxmox, agent: string): Promise<void> => {
  const bytes = Buffer.from(Array.from({ length: 40_000 }, (_, index) => (index * 7) % 256))
  await client.post(`${agent}/file-write`, {
    file: '/root/in',
    content: bytes.toString('base64'),
    encode: false,
  })
  const { pid } = await client.post<{ pid: number }>(`${agent}/exec`, {
    command: [
      '/bin/sh',
      '-c',
      'cat; sha256sum </root/in; printf "caf\\303\\251\\n" >/root/out; echo oops >&2; exit 7',
    ],
    'input-data': 'from outside\n',
  })
  type Status = { exited: number; exitcode?: number; 'out-data'?: string; 'err-data'?: string }
  let status: Status = { exited: 0 }
  const ended = async () => {
    status = await client.get<Status>(`${agent}/exec-status`, { pid })
    return status.exited === 1 || sleep(200, false)
  }
  await until(ended, 'the command ends', MINUTES)
  expect(status).toMatchObject({ exitcode: 7, 'err-data': 'oops\n' })
  expect(status['out-data']).toBe(`from outside\n${sha256(bytes)}  -\n`)
  await expect(client.get(`${agent}/exec-status`, { pid })).rejects.toThrow('does not exist')

  const { content } = await client.get<{ content: string }>(`${agent}/file-read`, { file: '/root/out' })
  expect(Buffer.from(content, 'latin1').toString()).toBe('caf\u00e9\n')
  await expect(client.get(`${agent}/file-read`, { file: '/absent' })).rejects.toThrow('No such file')
}

/** Processes of QEMU that use a directory. */
const machinesRunning = (directory: string): string[] =>
  readdirSync('/proc').filter(pid => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return command.startsWith('qemu-system') && command.includes(directory)
    } catch {
      return false
    }
  })

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
