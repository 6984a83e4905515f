import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Certificate } from '../../src/guest/certificate.ts'
import { isTerminal } from '../../src/jobs/states.ts'
import type { ProxmoxProviderOptions } from '../../src/providers/proxmox/proxmox-provider-options.ts'
import { type TestEngine, until } from './engine.ts'
import { freePort } from './free-port.ts'
import { type Lab, openLab } from './proxmox-provider.ts'
import { type MachineImage, type Passage, qemuGuests } from './pve/guests/qemu/index.ts'
import { removeDirectory } from './remove-directory.ts'
import { CALLBACK, consoleTail, openLink } from './vm.ts'

export const MINUTES = 60_000

export interface RealOptions {
  readonly tls?: Certificate
  /** Seconds without a sign of life after which a machine is given up. */
  readonly silence?: number
  /** What is in the network of machines beside the daemon. */
  readonly passages?: readonly Passage[]
}

/** Cluster, runtime and engine, with machines that boot in QEMU; and the end of it all. */
export const realMachines = (image: MachineImage) => {
  const closers: (() => Promise<unknown>)[] = []
  const onClose = (closer: () => Promise<unknown>): void => void closers.push(closer)

  const makeDirectory = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'vm-'))
    onClose(async () => removeDirectory(directory))
    return directory
  }

  /** Machines reach the daemon, and what else the firewall lets through of their network. */
  const openDeputy = async (
    more: Partial<ProxmoxProviderOptions>,
    { tls, silence, passages = [] }: RealOptions = {},
  ): Promise<RealDeputy> => {
    const port = await freePort()
    const link = await openLink(port)
    onClose(link.close)
    const directory = makeDirectory()
    const home = { guest: CALLBACK, target: { host: '127.0.0.1', port: link.port } }
    const cluster = await openLab({
      emulator: {
        guests: qemuGuests({
          image,
          directory,
          passages: more.channel === 'agent' ? passages : [home, ...passages],
        }),
      },
    })
    onClose(cluster.close)
    cluster.emulator.state.clusterFirewall.options.enable = 1
    const url = `${tls ? 'https' : 'http'}://${CALLBACK.host}:${CALLBACK.port}`
    const provider = cluster.makeProvider({
      callback: { host: '127.0.0.1', port, url, ...(tls && { tls }) },
      defaults: { cpu: 1, memory: 2 ** 30, disk: undefined },
      heartbeatSeconds: 5,
      ...more,
    })
    // A pool is filled again at once; a test that has what it needs wants no further machine.
    let size = provider.pool?.size ?? 0
    const pool = {
      ...provider.pool!,
      get size() {
        return size
      },
    }
    const engine = await cluster.open(
      { ...provider, pool },
      {
        config: config => {
          config.supervision.provisioning = 300
          if (silence !== undefined) config.supervision.heartbeat = silence
        },
      },
    )
    const drain = () => {
      size = 0
    }
    return { cluster, engine, directory, link, drain }
  }

  return {
    onClose,
    makeDirectory,
    openDeputy,
    begin,
    run: async (deputy: RealDeputy, manifest: object) => (await begin(deputy, manifest)).end(),
    expectNothingLeft,
    close: async (): Promise<void> => {
      for (const close of closers.splice(0).reverse()) await close()
    },
  }
}

export interface RealDeputy {
  readonly cluster: Lab
  readonly engine: TestEngine
  /** What machines have on the host: disks, sockets, consoles. */
  readonly directory: string
  /** Between machines and the daemon. */
  readonly link: Awaited<ReturnType<typeof openLink>>
  /** Fills the pool no more. */
  drain(): void
}

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

/** Templates stay. */
const expectNothingLeft = async ({ cluster, directory }: RealDeputy): Promise<void> => {
  const { vms } = cluster.emulator.state
  const disks = () => readdirSync(directory).filter(vmid => vms.get(Number(vmid))?.config.template !== '1')
  const left = () => [cluster.machines(), cluster.seeds(), disks()].map(one => one.length)
  await until(() => left().every(count => count === 0), 'the machine is destroyed', MINUTES)
  expect(machinesRunning(directory)).toEqual([])
}

/** Processes of QEMU that use a directory. */
export const machinesRunning = (directory: string): string[] =>
  readdirSync('/proc').filter(pid => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return command.startsWith('qemu-system') && command.includes(directory)
    } catch {
      return false
    }
  })
