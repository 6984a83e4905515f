import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { planHost } from '../host/plan-host.ts'
import { createJobDisks, hasOneDisk } from '../sandbox/job-disks.ts'
import { planSandbox, type SandboxShape } from '../sandbox/plan-sandbox.ts'
import { bootMachine, type LaunchPlan, type LocalMachine } from './local-machine.ts'
import { createPipeFactory } from './output-pipes.ts'
import type { RunSpec } from './run-spec.ts'
import { helperScript } from './runner-script.ts'
import type { ShimConfig } from './shim-config.ts'

/** Boots the machines of a shim, one of them ahead of need. */
export interface MachineFactory {
  /** Boots a machine for the next run. `onReady` is called when it waits for one. */
  bootWarm(onReady: () => void): void
  /** Returns the warm machine if the run fits into it, else boots one. It may not be ready yet. */
  take(spec: RunSpec): Promise<LocalMachine>
  /** Kills the warm machine. */
  close(): Promise<void>
}

const BOOT_MS = 60_000

/** `ownDir` is a private directory of the shim, below its working directory. */
export const createMachineFactory = (config: ShimConfig, ownDir: string): MachineFactory => {
  const openPipe = createPipeFactory(ownDir)
  const disks = hasOneDisk(config.backend) ? createJobDisks(config.uid) : null
  let warm: LocalMachine | undefined
  let boots = 0

  const boot = (shape: SandboxShape): LocalMachine => {
    const name = `${config.id}-${boots++}`
    const disk = disks?.take(shape.limits.disk) ?? null
    let plan: LaunchPlan | undefined
    try {
      plan = config.runtime === 'sandbox' ? planSandbox(config, shape, name, disk) : planHost(config, name)
      return bootMachine(plan, openPipe)
    } catch (error) {
      // The home was removed: remove the cgroup, which lies outside it.
      void plan?.cgroup?.remove()
      disk?.release()
      throw error
    }
  }

  /** Starts the egress proxy first if the job has an allow-list. The proxy stops with the machine. */
  const bootFor = async (spec: RunSpec): Promise<LocalMachine> => {
    if (config.runtime === 'host' || typeof spec.network === 'string') return boot(spec)
    const name = `proxy-${boots}.sock`
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
    spec.network === 'none' && spec.programs.length === 0 && spec.limits.disk === config.warm?.disk

  return {
    bootWarm: onReady => {
      if (config.warm === null || warm !== undefined) return
      const machine = boot({ network: 'none', programs: [], limits: config.warm })
      warm = machine
      void machine.ready.then(
        () => warm === machine && onReady(),
        () => {}, // `gone` follows.
      )
      void machine.gone.then(() => {
        if (warm === machine) warm = undefined
      })
    },
    take: async spec => {
      const ready = warm
      warm = undefined
      if (ready !== undefined && fitsWarm(spec)) return ready
      ready?.kill()
      await ready?.gone
      return bootFor(spec)
    },
    close: async () => {
      const last = warm
      last?.kill()
      await last?.gone
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
