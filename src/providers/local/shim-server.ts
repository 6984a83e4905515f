import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { planHost } from '../host/plan-host.ts'
import { createJobDisks, hasOneDisk } from '../sandbox/job-disks.ts'
import { planSandbox, type SandboxShape } from '../sandbox/plan-sandbox.ts'
import { type JobRun, runJob } from './job-run.ts'
import { saveResult } from './job-state-files.ts'
import { toLocalError } from './local-error.ts'
import { bootMachine, type LaunchPlan, type LocalMachine } from './local-machine.ts'
import { createPipeFactory } from './output-pipes.ts'
import { helperScript } from './runner-script.ts'
import {
  type FromShim,
  onMessages,
  PROTOCOL_VERSION,
  type ShimConfig,
  type ShimResult,
  type StartSpec,
  sendMessage,
  type ToShim,
} from './shim-protocol.ts'

const HEARTBEAT_MS = 10_000
const HOME_CHECK_MS = 15_000
const BOOT_MS = 60_000

interface CurrentJob {
  readonly spec: StartSpec
  readonly run: JobRun
  /** Set when the job has ended and its result is being written. */
  finished?: {
    readonly result: ShimResult
    readonly stopSaving: AbortController
    readonly saved: Promise<void>
  }
}

/** Accepts connections of the daemon and runs its jobs, one at a time. */
export const serveShim = async (config: ShimConfig): Promise<void> => {
  // Use relative names: the path of a Unix socket is limited to 108 bytes.
  process.chdir(config.dir)
  const socketName = `${config.id}.sock`
  const ownDir = join(config.dir, `${config.id}.d`)
  rmSync(ownDir, { recursive: true, force: true })
  mkdirSync(ownDir, { mode: 0o700 })
  const openPipe = createPipeFactory(ownDir)
  const disks = hasOneDisk(config.backend) ? createJobDisks(config.uid) : null

  const sockets = new Set<Socket>()
  let machineId: string | null = null
  let current: CurrentJob | null = null
  let machine: LocalMachine | undefined
  let warm: LocalMachine | undefined
  let boots = 0
  let jobs = 0
  let retiring = false
  /** Strings cannot be wiped from memory, so a shim that has held secrets exits after the job. */
  let hasHeldSecrets = false
  let idleSince = performance.now()

  const broadcast = (message: FromShim) => {
    for (const socket of sockets) sendMessage(socket, message)
  }

  /** Starts the egress proxy first if the job has an allow-list. The proxy stops with the machine. */
  const bootFor = async (spec: StartSpec): Promise<LocalMachine> => {
    if (config.runtime === 'host' || typeof spec.network === 'string') return boot(spec)
    const proxySocket = join(ownDir, `proxy-${boots}.sock`)
    const { startEgressProxy: startProxy } = await import('./egress-proxy.ts')
    const proxy = await startProxy(`${config.id}.d/proxy-${boots}.sock`, spec.network)
    const next = boot({ ...spec, proxySocket })
    void next.gone.then(() => {
      proxy.close()
      rmSync(proxySocket, { force: true })
    })
    return next
  }

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

  const bootWarmMachine = () => {
    if (config.warm === null || warm !== undefined || machineId !== null || retiring) return
    const next = boot({ network: 'none', programs: [], limits: config.warm })
    warm = next
    void next.gone.then(() => {
      if (warm === next) warm = undefined
    })
  }

  /** Returns the warm machine if it has the wanted shape, else boots a new one. */
  const machineFor = async (spec: StartSpec): Promise<LocalMachine> => {
    if (machine !== undefined) return machine
    if (spec.continues)
      throw new AppError('not_found', 'The kept machine has ended, and its workspace with it.')
    const ready = warm
    warm = undefined
    const warmFits =
      ready !== undefined &&
      spec.network === 'none' &&
      spec.programs.length === 0 &&
      spec.limits.disk === config.warm?.disk
    if (ready !== undefined && !warmFits) {
      ready.kill()
      await ready.gone
    }
    const next = warmFits ? ready : await bootFor(spec)
    machine = next
    void next.gone.then(() => {
      if (machine === next) machine = undefined
    })
    await whenReady(next).catch(cause => {
      throw new AppError('unavailable', `The machine did not start: ${(cause as Error).message}`, {
        hint: 'Run: deputy doctor',
        cause,
      })
    })
    return next
  }

  const start = (socket: Socket, spec: StartSpec) => {
    const refuse = (message: string, code: 'conflict' | 'unavailable' = 'conflict') =>
      sendMessage(socket, {
        type: 'refused',
        jobId: spec.jobId,
        error: new AppError(code, message).toBody(),
      })
    if (current !== null && current.finished === undefined)
      return refuse(`Another job (${current.spec.jobId}) runs in this machine.`)
    if (retiring || (machineId !== null && machineId !== spec.machineId))
      return refuse('This shim holds another machine.', 'unavailable')
    let run: JobRun
    try {
      run = runJob({
        spec,
        getMachine: () => machineFor(spec),
        killBootingMachine: () => machine?.kill(),
        onStarted: at => broadcast({ type: 'started', jobId: spec.jobId, at }),
        onLog: coalesce(() => broadcast({ type: 'log', jobId: spec.jobId })),
      })
    } catch (error) {
      return refuse(toLocalError(error).message, 'unavailable')
    }
    // The daemon has the result of the previous job, else it would not send the next one.
    current?.finished?.stopSaving.abort()
    machineId = spec.machineId
    jobs += 1
    hasHeldSecrets ||= Object.keys(spec.secrets).length > 0
    const thisJob: CurrentJob = { spec, run }
    current = thisJob
    const heartbeat = setInterval(() => broadcast({ type: 'alive', jobId: spec.jobId }), HEARTBEAT_MS)
    void run.done.then(async result => {
      clearInterval(heartbeat)
      const stopSaving = new AbortController()
      const saved = saveResult(spec.dir, result, stopSaving.signal)
      thisJob.finished = { result, stopSaving, saved }
      // The daemon need not wait for the disk: the file is for a restarted daemon.
      broadcast({ type: 'done', jobId: spec.jobId, result })
      await saved
      if (current !== thisJob) return
      current = null
      if (spec.lifecycle === 'ephemeral' || machine === undefined) await release()
    })
  }

  let releasing: Promise<void> | null = null
  /** Shuts the machine down. The shim is free when the machine is gone. */
  const release = (): Promise<void> => {
    releasing ??= endMachine().finally(() => {
      releasing = null
    })
    return releasing
  }

  const endMachine = async () => {
    const id = machineId
    const last = machine
    if (last !== undefined) {
      last.shutDown()
      const timer = setTimeout(() => last.kill(), 1000)
      await last.gone
      clearTimeout(timer)
    }
    machine = undefined
    machineId = null
    if (id !== null) broadcast({ type: 'gone', machineId: id })
    idleSince = performance.now()
    if (jobs >= config.maxJobs || hasHeldSecrets) retiring = true
    if (retiring) return shutDown()
    bootWarmMachine()
    broadcast({ type: 'idle' })
  }

  const destroy = async (socket: Socket, id: string) => {
    if (machineId !== id) return sendMessage(socket, { type: 'gone', machineId: id })
    machine?.kill()
    if (current !== null && current.finished === undefined) {
      current.run.stop('cancel', 0)
      return // `release` runs when the job has ended.
    }
    current?.finished?.stopSaving.abort()
    await current?.finished?.saved
    if (machineId === id) await release()
  }

  let shuttingDown = false
  const shutDown = async () => {
    if (shuttingDown) return
    shuttingDown = true
    retiring = true
    server.close()
    rmSync(join(config.dir, socketName), { force: true })
    broadcast({ type: 'leaving' })
    const machines = [warm, machine].flatMap(machine => machine ?? [])
    for (const machine of machines) machine.kill()
    await Promise.all(machines.map(machine => machine.gone))
    rmSync(ownDir, { recursive: true, force: true })
    process.exit(0)
  }

  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    onMessages<ToShim>(socket, message => {
      switch (message.type) {
        case 'start':
          return start(socket, message.spec)
        case 'stop':
          if (current?.spec.jobId === message.jobId) current.run.stop(message.kind, message.graceSeconds)
          return
        case 'attach':
          if (current?.spec.jobId === message.jobId && current.finished === undefined) return
          return sendMessage(socket, {
            type: 'done',
            jobId: message.jobId,
            result: current?.spec.jobId === message.jobId ? (current.finished?.result ?? null) : null,
          })
        case 'destroy':
          return void destroy(socket, message.machineId)
        case 'retire':
          if (machineId === null) void shutDown()
          else retiring = true
      }
    })
    sendMessage(socket, {
      type: 'hello',
      version: PROTOCOL_VERSION,
      id: config.id,
      pid: process.pid,
      uid: config.uid,
      machineId,
      jobId: current?.finished === undefined ? (current?.spec.jobId ?? null) : null,
      ...(current?.finished && { unsavedJobId: current.spec.jobId }),
      runtime: config.runtime,
    })
  })
  server.listen(socketName, () => {
    process.stdout.write('ready\n')
    bootWarmMachine()
  })

  setInterval(() => {
    if (!existsSync(ownDir)) {
      // The home was removed: nobody can read the result.
      current?.run.stop('cancel', 0)
      return void shutDown()
    }
    const idleMs = performance.now() - idleSince
    if (machineId === null && sockets.size === 0 && idleMs > config.idleSeconds * 1000) void shutDown()
  }, HOME_CHECK_MS)
}

/** Waits until the runner reads commands and the helper, if any, is ready. */
const whenReady = async (machine: LocalMachine): Promise<void> => {
  const timer = setTimeout(() => machine.kill(), BOOT_MS)
  try {
    await machine.ready
    if (machine.plan.helper !== undefined) await startHelper(machine, machine.plan.helper)
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

/** At most one call per turn of the event loop. */
const coalesce = (call: () => void): (() => void) => {
  let pending = false
  return () => {
    if (pending) return
    pending = true
    setImmediate(() => {
      pending = false
      call()
    })
  }
}
