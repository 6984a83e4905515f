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
import { type Certificate, createCertificate } from '../../src/guest/certificate.ts'
import { isTerminal } from '../../src/jobs/states.ts'
import { createProxmox, type Proxmox } from '../../src/proxmox/client.ts'
import { parseSettings } from '../../src/proxmox/settings.ts'
import type { ProxmoxRuntimeOptions } from '../../src/runtimes/proxmox/options.ts'
import { until } from '../support/engine.ts'
import { type Lab, openLab } from '../support/proxmox-runtime.ts'
import { requireOrSkip } from '../support/require.ts'
import { CALLBACK, consoleTail, findImage, freePort, openLink } from '../support/vm.ts'

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
  const openDeputy = async (
    more: Partial<ProxmoxRuntimeOptions>,
    { tls, silence }: { tls?: Certificate; silence?: number } = {},
  ) => {
    const port = await freePort()
    const link = await openLink(port)
    closers.push(link.close)
    const directory = makeDirectory()
    const lab: Lab = await openLab({
      emulator: { guests: guestsFor(directory, more.channel === 'agent' ? undefined : link.port) },
    })
    closers.push(lab.close)
    const url = `${tls ? 'https' : 'http'}://${CALLBACK.host}:${CALLBACK.port}`
    const runtime = lab.makeRuntime({
      callback: { host: '127.0.0.1', port, url, ...(tls && { tls }) },
      defaults: { cpu: 1, memory: 2 ** 30, disk: undefined },
      heartbeatSeconds: 5,
      ...more,
    })
    // A pool is filled again at once; a test that has what it needs wants no further machine.
    let poolSize = runtime.poolSize ?? 0
    const engine = await lab.open(
      {
        ...runtime,
        get poolSize() {
          return poolSize
        },
      },
      {
        config: config => {
          config.supervision.provisioning = 300
          if (silence !== undefined) config.supervision.heartbeat = silence
        },
      },
    )
    const drain = () => {
      poolSize = 0
    }
    return { lab, engine, directory, link, drain }
  }

  type RealDeputy = Awaited<ReturnType<typeof openDeputy>>

  const begin = async ({ engine, directory }: RealDeputy, manifest: object) => {
    const { job_id } = await engine.deputy.submit({ runtime: 'proxmox', retries: 0, ...manifest }, 'test')
    const consoles = () =>
      readdirSync(directory).map(vmid => ({ vmid, console: consoleTail(directory, Number(vmid)) }))
    return {
      id: job_id,
      printed: async (text: RegExp) => {
        const seen = async () => {
          const { status, error } = await engine.deputy.get(job_id)
          const chunks = await engine.store.readOutput(job_id, 0, 10_000)
          if (text.test(Buffer.concat(chunks.map(({ data }) => data)).toString())) return true
          if (isTerminal(status)) throw new Error(`it ended as ${status}: ${error?.message}`)
          return sleep(200, false)
        }
        await until(seen, `${text} is printed`, 5 * MINUTES)
      },
      end: async () => {
        const { error } = await engine.deputy.wait(job_id, {
          timeoutMs: 5 * MINUTES,
          signal: AbortSignal.timeout(6 * MINUTES),
        })
        const seen = consoles()
        const result = await engine.deputy.result(job_id, {})
        process.stderr.write(`phases in ms: ${JSON.stringify(result.phases)}\n`)
        return { job_id, result, told: () => JSON.stringify({ error, consoles: seen }, null, 1) }
      },
    }
  }

  const run = async (deputy: RealDeputy, manifest: object) => (await begin(deputy, manifest)).end()

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

  it('fetch their seed from the address in their SMBIOS, and go when their job is cancelled', async () => {
    const deputy = await openDeputy({ injection: 'http' })
    const job = await begin(deputy, {
      task: 'where are you from',
      agentType: 'custom',
      agent: { command: ['/bin/sh', '-c', 'cat /var/lib/cloud/instance/datasource; exec sleep 500'] },
      timeout: 600,
    })
    await job.printed(/DataSourceNoCloudNet \[seed=dmi,http:\/\/10\.0\.2\.100:8765\/seed\/[\w-]+\/\]/)
    await deputy.engine.deputy.cancel(job.id, 'test')
    const { result, told } = await job.end()
    expect(result.status, told()).toBe('cancelled')
    expect(result.error).toMatchObject({ code: 'cancelled', message: 'It was cancelled.' })
    expect(result.output).toContain('DataSourceNoCloudNet')
    await expectNothingLeft(deputy)
  })

  it('wait for work, report over HTTPS and through a cut, and are given up when they forget it all', async () => {
    const tls = createCertificate({ commonName: 'deputy', names: ['localhost'] })
    const deputy = await openDeputy({ poolSize: 1 }, { tls, silence: 30 })
    const { engine, lab, link } = deputy
    const ready = async () => (await engine.store.listMachines()).find(({ state }) => state === 'ready')
    await until(
      async () => (await ready()) !== undefined || sleep(200, false),
      'a machine waits',
      5 * MINUTES,
    )
    const { id: machine } = (await ready())!
    deputy.drain()

    const first = await run(deputy, {
      task: 'who are you',
      agentType: 'custom',
      agent: { command: ['id', '-un'] },
      lifecycle: 'persistent',
      timeout: 200,
    })
    expect(first.result.status, first.told()).toBe('success')
    expect(first.result.output).toBe('deputy\n')
    expect(first.result.machine_id).toBe(machine)
    expect(lab.machines()).toHaveLength(1)

    const inThere = (script: string) => ({
      task: 'go on',
      agentType: 'custom',
      agent: { command: ['/bin/sh', '-c', script] },
      machine,
      timeout: 600,
    })
    const second = await begin(deputy, inThere('for i in $(seq 15); do echo line $i; sleep 0.5; done'))
    await second.printed(/line 2\n/)
    link.cut()
    await until(() => link.refused() >= 3, 'the machine finds the network cut', MINUTES)
    link.mend()
    const { result, told } = await second.end()
    expect(result.status, told()).toBe('success')
    expect(result.output).toBe(Array.from({ length: 15 }, (_, index) => `line ${index + 1}\n`).join(''))

    const third = await begin(deputy, inThere('echo begun; exec sleep 500'))
    await third.printed(/begun/)
    const client = createProxmox(parseSettings(lab.emulator.env()))
    closers.push(() => client.close())
    const { vmid, node } = lab.machines()[0]!
    await client.waitTask(await client.post<string>(`/nodes/${node}/qemu/${vmid}/status/reset`))
    const lost = await third.end()
    expect(lost.result.status, lost.told()).toBe('failed')
    expect(lost.result.error).toMatchObject({
      code: 'stale',
      message: 'Its machine stopped sending signs of life and was given up.',
    })
    expect(lost.result.output).toBe('begun\n')
    await engine.deputy.destroyMachine(machine)
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
