import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { planHost } from '../host/plan-host.ts'
import { createJobDisks, hasOneDisk, type JobDisk } from '../sandbox/job-disks.ts'
import { planSandbox, type SandboxShape } from '../sandbox/plan-sandbox.ts'
import { bootMachine, type LaunchPlan, type LocalMachine } from './local-machine.ts'
import { createPipeFactory } from './output-pipes.ts'
import type { RunSpec } from './run-spec.ts'
import { helperScript } from './runner-script.ts'
import type { ShimConfig } from './shim-config.ts'

/** Boots the machines of a shim, some of them ahead of need. */
export interface MachineFactory {
  /** Boots machines for the next runs, as many as there is room for. */
  refill(): void
  /** Returns a machine that was booted ahead if the run fits into it, else boots one. It may not be ready yet. */
  take(spec: RunSpec): Promise<LocalMachine>
  /** Kills the machines that were booted ahead, and boots no more. */
  close(): Promise<void>
}

const BOOT_MS = 60_000

/** `ownDir` is a private directory of the shim, below its working directory. */
export const createMachineFactory = (config: ShimConfig, ownDir: string): MachineFactory => {
  const openPipe = createPipeFactory(ownDir)
  const disks = hasOneDisk(config.backend) ? createJobDisks() : null
  const uids = createUids(config.uids)
  const warm = new Set<LocalMachine>()
  let boots = 0
  let proxies = 0
  /** Machines that have not ended. */
  let living = 0
  /** Runs that wait for a machine to end, to boot theirs. */
  let waiting = 0
  let closed = false

  const boot = (shape: SandboxShape): LocalMachine => {
    const name = `${config.id}-${boots++}`
    const uid = uids.take()
    let disk: JobDisk | null = null
    let plan: LaunchPlan | undefined
    try {
      disk = disks?.take(shape.limits.disk, uid) ?? null
      plan =
        config.runtime === 'sandbox'
          ? planSandbox({ ...config, uid }, shape, name, disk)
          : planHost(config, name)
      const machine = bootMachine(plan, openPipe)
      living += 1
      void machine.gone.then(() => {
        living -= 1
        uids.release(uid)
      })
      return machine
    } catch (error) {
      // The home was removed: remove the cgroup, which lies outside it.
      void plan?.cgroup?.remove()
      disk?.release()
      uids.release(uid)
      throw error
    }
  }

  /** Starts the egress proxy first if the job has an allow-list. The proxy stops with the machine. */
  const bootFor = async (spec: RunSpec): Promise<LocalMachine> => {
    if (config.runtime === 'host' || typeof spec.network === 'string') return boot(spec)
    const name = `proxy-${proxies++}.sock`
    const { startEgressProxy } = await import('./egress-proxy.ts')
    // A relative name: the path of a Unix socket is limited to 108 bytes.
    const proxy = await startEgressProxy(`${config.id}.d/${name}`, spec.network)
    const proxySocket = join(ownDir, name)
    const machine = boot({ ...spec, proxySocket })
    void machine.gone.then(() => {
      proxy.close()
      rmSync(proxySocket, { force: true })
    })
    return machine
  }

  const fitsWarm = (spec: RunSpec): boolean =>
    spec.network === 'none' && spec.programs.length === 0 && spec.limits.disk === config.warm.disk

  /** The one that was booted first is the most likely to be ready. */
  const takeWarm = (): LocalMachine | undefined => {
    const [machine] = warm
    if (machine !== undefined) warm.delete(machine)
    return machine
  }

  return {
    refill: () => {
      while (!closed && warm.size < config.spareMachines && living + waiting < config.maxMachines) {
        const machine = boot({ network: 'none', programs: [], limits: config.warm })
        warm.add(machine)
        void machine.gone.then(() => warm.delete(machine))
      }
    },
    take: async spec => {
      const machine = fitsWarm(spec) ? takeWarm() : undefined
      if (machine !== undefined) return machine
      if (living >= config.maxMachines) {
        const other = takeWarm()
        other?.kill()
        waiting += 1
        await other?.gone
        waiting -= 1
      }
      return bootFor(spec)
    },
    close: async () => {
      closed = true
      const last = [...warm]
      for (const machine of last) machine.kill()
      await Promise.all(last.map(machine => machine.gone))
    },
  }
}

/** The user ids of a shim's machines; null for all when they keep the daemon's. */
const createUids = (range: ShimConfig['uids']) => {
  const free = Array.from({ length: range?.count ?? 0 }, (_, index) => range!.first + index)
  return {
    take: (): number | null => {
      if (range === null) return null
      const uid = free.shift()
      if (uid === undefined) throw new AppError('unavailable', 'This shim has no user id left for a machine.')
      return uid
    },
    release: (uid: number | null): void => {
      if (uid !== null) free.push(uid)
    },
  }
}

/** Waits until the runner reads commands and the helper, if any, is ready. */
export const whenReady = async (machine: LocalMachine): Promise<void> => {
  const timer = setTimeout(() => machine.kill(), BOOT_MS)
  try {
    await machine.ready
    if (machine.plan.helper !== undefined) await startHelper(machine, machine.plan.helper)
  } catch (cause) {
    throw new AppError('unavailable', `The machine did not start: ${(cause as Error).message}`, {
      hint: 'Run: deputy doctor',
      cause,
    })
  } finally {
    clearTimeout(timer)
  }
}

const startHelper = (machine: LocalMachine, helper: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const off = machine.onStatus(line => {
      if (!line.startsWith('proxied ')) return
      off()
      machine.machinePids.add(Number(line.slice('proxied '.length)))
      resolve()
    })
    void machine.gone.then(() => reject(new Error('it ended before its network was ready')))
    machine.send(helperScript(helper))
  })
