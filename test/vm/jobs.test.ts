import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { OpenArtifact } from '../../src/engine/deputy.ts'
import { createCertificate } from '../../src/guest/certificate.ts'
import { createProxmox, type Proxmox } from '../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../src/proxmox/proxmox-settings.ts'
import { until } from '../support/engine.ts'
import { MINUTES, machinesRunning, realMachines } from '../support/real-machines.ts'
import { requireOrSkip } from '../support/require.ts'
import { CALLBACK, findImage } from '../support/vm.ts'

const { image, missing } = findImage()
/** In the network of machines, beside the daemon. */
const WORLD = { host: '10.0.2.101', port: 80 }

describe.skipIf(requireOrSkip(missing))('machines that boot for real', () => {
  const lab = realMachines(image!)
  const { openDeputy, begin, run, expectNothingLeft, onClose, makeDirectory } = lab
  afterEach(lab.close)

  it('run a job that its seed image brought, shut in, and tell how it ended', async () => {
    // A server of the host's own, which no job may reach.
    const private_ = createServer((_, response) => response.end('secret'))
    await new Promise<void>(resolve => private_.listen(0, '127.0.0.1', resolve))
    onClose(() => new Promise(resolve => private_.close(resolve)))
    const { port } = private_.address() as AddressInfo
    const script = `
      id -un
      cat /var/lib/cloud/instance/datasource
      nproc
      df --output=size -B1 / | tail -1
      curl -s -m 3 http://10.0.2.2:${port}/ || echo shut in
      curl -s -m 9 http://${CALLBACK.host}:${CALLBACK.port}/health; echo
      printf 'caf\\303\\251 %s\\n' "$GREETING"
      grep SigIgn: /proc/self/status
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
    expect(lines.slice(4)).toEqual([
      ...['shut in', '{"status":"ok"}', `café it's "fine" $HOME`],
      ...[`SigIgn:\t${'0'.repeat(16)}`, ''],
    ])
    expect(result.output).toContain('complaint\n')
    const artifact = await bytesOf(await deputy.engine.deputy.openArtifact(job_id, 'out/report.txt'))
    expect(artifact.toString()).toBe('made in a machine\n')
    await expectNothingLeft(deputy)
  })

  /** A server that stands for all the world: it hears who gets through. */
  const openWorld = async () => {
    const asked: string[] = []
    const server = createServer(({ url = '' }, response) => {
      asked.push(url)
      response.end(`hello from ${url}\n`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onClose(() => new Promise(resolve => server.close(resolve)))
    return { asked, port: (server.address() as AddressInfo).port }
  }

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
    expect(result.error).toMatchObject({ code: 'cancelled', message: 'The job was cancelled.' })
    expect(result.output).toContain('DataSourceNoCloudNet')
    await expectNothingLeft(deputy)
  })

  it('wait for work, bring back changes, keep to a list of domains, report through a cut, and are given up when they forget it all', async () => {
    const tls = createCertificate({ commonName: 'deputy', names: ['localhost'] })
    const world = await openWorld()
    const deputy = await openDeputy(
      { poolSize: 1, network: { firewall: true, privateAddresses: true } },
      { tls, silence: 30, passages: [{ guest: WORLD, target: { host: '127.0.0.1', port: world.port } }] },
    )
    const { engine, cluster, link } = deputy
    const ready = async () => (await engine.store.listMachines()).find(({ state }) => state === 'ready')
    await until(
      async () => (await ready()) !== undefined || sleep(200, false),
      'a machine waits',
      5 * MINUTES,
    )
    const { id: machine } = (await ready())!
    deputy.drain()

    const source = makeDirectory()
    fillWorkspace(source)
    const direct = `curl -sS -m 9 --noproxy '*' http://${WORLD.host}:${WORLD.port}/direct`
    const first = await run(deputy, {
      task: 'change what you were given',
      agentType: 'custom',
      agent: {
        command: [
          '/bin/sh',
          '-c',
          `${CHANGES}
           id -un
           curl -sS -m 9 http://localhost:${world.port}/plain
           curl -sS -m 9 --proxytunnel http://localhost:${world.port}/tunnel
           curl -sS -m 9 http://other.example/
           ${direct} 2>/dev/null || echo no way around`,
        ],
      },
      workspace: { path: source, patch: true },
      network: [`localhost:${world.port}`],
      lifecycle: 'persistent',
      timeout: 200,
    })
    expect(first.result.status, first.told()).toBe('success')
    expect(first.result.output.split('\n')).toEqual([
      'deputy',
      'hello from /plain',
      'hello from /tunnel',
      'other.example:80 is not in the network list of this job.',
      'no way around',
      '',
    ])
    expect(world.asked).toEqual(['/plain', '/tunnel'])
    expect(first.result.isolation?.join()).toContain(`network: only localhost:${world.port}`)
    expect(first.result.machine_id).toBe(machine)
    expect(cluster.machines()).toHaveLength(1)
    const patch = await bytesOf(await engine.deputy.openPatch(first.job_id))
    expectChanges(source, patch)

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

    // The rules of a kept machine are those of its job: what was shut is open now.
    const third = await begin(deputy, {
      ...inThere(`${direct}; echo begun; exec sleep 500`),
      network: 'full',
    })
    await third.printed(/begun/)
    const client = createProxmox(parseSettings(cluster.emulator.env()))
    onClose(() => client.close())
    const { vmid, node } = cluster.machines()[0]!
    await client.waitTask(await client.post<string>(`/nodes/${node}/qemu/${vmid}/status/reset`))
    const lost = await third.end()
    expect(lost.result.status, lost.told()).toBe('failed')
    expect(lost.result.error).toMatchObject({
      code: 'stale',
      message: 'The machine stopped sending heartbeats and was given up.',
    })
    expect(lost.result.output).toBe('hello from /direct\nbegun\n')
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

    const client = createProxmox(parseSettings(deputy.cluster.emulator.env()))
    onClose(() => client.close())
    const { vmid, node } = deputy.cluster.machines()[0]!
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
    const module = fileURLToPath(
      new URL('../../.cache/pve/test/support/pve/guests/qemu/index.js', import.meta.url),
    )
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

const fillWorkspace = (directory: string): void => {
  mkdirSync(join(directory, 'src'))
  writeFileSync(join(directory, 'src/edit.txt'), '1\n2\n3\n')
  writeFileSync(join(directory, 'old.txt'), 'old\n')
  writeFileSync(join(directory, 'run.sh'), '#!/bin/sh\n', { mode: 0o644 })
  writeFileSync(join(directory, 'logo.bin'), Buffer.from([0, 1, 2, 3]))
}

const CHANGES = `set -e
  echo 4 >>src/edit.txt
  mkdir -p deep/er
  echo new >deep/er/new.txt
  rm old.txt
  chmod +x run.sh
  printf '\\0\\1\\2\\377' >logo.bin
  set +e`

/** The patch, taken by git, makes of the original what the machine made of it. */
const expectChanges = (directory: string, patch: Buffer): void => {
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(directory) }
  execFileSync('git', ['apply', '-'], { cwd: directory, input: patch, env })
  const read = (path: string) => readFileSync(join(directory, path))
  expect(readdirSync(directory).sort()).toEqual(['deep', 'logo.bin', 'run.sh', 'src'])
  expect(read('src/edit.txt').toString()).toBe('1\n2\n3\n4\n')
  expect(read('deep/er/new.txt').toString()).toBe('new\n')
  expect([...read('logo.bin')]).toEqual([0, 1, 2, 255])
  expect(statSync(join(directory, 'run.sh')).mode & 0o111).toBe(0o111)
}

const bytesOf = async ({ read }: Pick<OpenArtifact, 'read'>): Promise<Buffer> => {
  const pieces: Uint8Array[] = []
  for await (const piece of read()) pieces.push(piece)
  return Buffer.concat(pieces)
}

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

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
