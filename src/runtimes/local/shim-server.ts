import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { planHost } from '../host/plan-host.ts'
import { planSandbox, type SandboxShape } from '../sandbox/plan-sandbox.ts'
import { type JobRun, runJob } from './job-run.ts'
import { saveResult } from './job-state-files.ts'
import { toLocalError } from './local-error.ts'
import { type Box, bootBox } from './local-machine.ts'
import { createPipes } from './output-pipes.ts'
import { helperText } from './runner-script.ts'
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

const ALIVE_MS = 10_000
const HOME_CHECK_MS = 15_000
const BOOT_MS = 60_000

interface Current {
  readonly spec: StartSpec
  readonly run: JobRun
  /** Set when it is over and its result is being written. */
  over?: { readonly result: ShimResult; readonly giveUp: AbortController; readonly saved: Promise<void> }
}

/** Listens for the daemon and runs what it sends, one job at a time. */
export const serveShim = async (config: ShimConfig): Promise<void> => {
  // Relative names: the path of a Unix socket must be short, that of a home need not be.
  process.chdir(config.dir)
  const socketName = `${config.id}.sock`
  const ownDir = join(config.dir, `${config.id}.d`)
  rmSync(ownDir, { recursive: true, force: true })
  mkdirSync(ownDir, { mode: 0o700 })
  const openPipe = createPipes(ownDir)

  const sockets = new Set<Socket>()
  let machineId: string | null = null
  let current: Current | null = null
  let box: Box | undefined
  let warm: Box | undefined
  let boots = 0
  let jobs = 0
  let retiring = false
  /** A process cannot wipe its strings; only its end does. */
  let hasHeldSecrets = false
  let idleSince = performance.now()

  const tell = (message: FromShim) => {
    for (const socket of sockets) sendMessage(socket, message)
  }

  /** A list of domains needs the proxy first; it ends with the machine. */
  const bootFor = async (spec: StartSpec): Promise<Box> => {
    if (config.runtime === 'host' || typeof spec.network === 'string') return boot(spec)
    const proxySocket = join(ownDir, `proxy-${boots}.sock`)
    const { startProxy } = await import('./egress-proxy.ts')
    const proxy = await startProxy(`${config.id}.d/proxy-${boots}.sock`, spec.network)
    const next = boot({ ...spec, proxySocket })
    void next.gone.then(() => {
      proxy.close()
      rmSync(proxySocket, { force: true })
    })
    return next
  }

  const boot = (shape: SandboxShape): Box => {
    const name = `${config.id}-${boots++}`
    const plan = config.runtime === 'sandbox' ? planSandbox(config, shape, name) : planHost(config, name)
    try {
      return bootBox(plan, openPipe)
    } catch (error) {
      // The home was removed under it: what the plan has set up elsewhere must not stay.
      void plan.cgroup?.remove()
      throw error
    }
  }

  const warmUp = () => {
    if (config.warm === null || warm !== undefined || machineId !== null || retiring) return
    const next = boot({ network: 'none', programs: [], limits: config.warm })
    warm = next
    void next.gone.then(() => {
      if (warm === next) warm = undefined
    })
  }

  /** The waiting machine when it has the wanted shape, else a new one. */
  const machineFor = async (spec: StartSpec): Promise<Box> => {
    if (box !== undefined) return box
    if (spec.continues)
      throw new AppError('not_found', 'The kept machine has ended, and its workspace with it.')
    const ready = warm
    warm = undefined
    const fits =
      ready !== undefined &&
      spec.network === 'none' &&
      spec.programs.length === 0 &&
      spec.limits.disk === config.warm?.disk
    if (ready !== undefined && !fits) {
      ready.kill()
      await ready.gone
    }
    const next = fits ? ready : await bootFor(spec)
    box = next
    void next.gone.then(() => {
      if (box === next) box = undefined
    })
    await whenReady(next).catch(cause => {
      throw new AppError('unavailable', `The machine could not be made: ${(cause as Error).message}`, {
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
    if (current !== null && current.over === undefined)
      return refuse(`Another job (${current.spec.jobId}) runs in this machine.`)
    if (retiring || (machineId !== null && machineId !== spec.machineId))
      return refuse('This shim holds another machine.', 'unavailable')
    let run: JobRun
    try {
      run = runJob({
        spec,
        machine: () => machineFor(spec),
        abandon: () => box?.kill(),
        onStarted: at => tell({ type: 'started', jobId: spec.jobId, at }),
        onLog: coalesce(() => tell({ type: 'log', jobId: spec.jobId })),
      })
    } catch (error) {
      return refuse(toLocalError(error).message, 'unavailable')
    }
    // The result of the job before is with the daemon, else it would not send the next one.
    current?.over?.giveUp.abort()
    machineId = spec.machineId
    jobs += 1
    hasHeldSecrets ||= Object.keys(spec.secrets).length > 0
    const mine: Current = { spec, run }
    current = mine
    const alive = setInterval(() => tell({ type: 'alive', jobId: spec.jobId }), ALIVE_MS)
    void run.done.then(async result => {
      clearInterval(alive)
      const giveUp = new AbortController()
      const saved = saveResult(spec.dir, result, giveUp.signal)
      mine.over = { result, giveUp, saved }
      // The daemon need not wait for the disk; the file is for the next one.
      tell({ type: 'done', jobId: spec.jobId, result })
      await saved
      if (current !== mine) return
      current = null
      if (spec.lifecycle === 'ephemeral' || box === undefined) await release()
    })
  }

  let releasing: Promise<void> | null = null
  /** Ends the machine; the shim is free again when nothing of it is left. */
  const release = (): Promise<void> => {
    releasing ??= endMachine().finally(() => {
      releasing = null
    })
    return releasing
  }

  const endMachine = async () => {
    const id = machineId
    const last = box
    if (last !== undefined) {
      last.leave()
      const timer = setTimeout(() => last.kill(), 1000)
      await last.gone
      clearTimeout(timer)
    }
    box = undefined
    machineId = null
    if (id !== null) tell({ type: 'gone', machineId: id })
    idleSince = performance.now()
    if (jobs >= config.maxJobs || hasHeldSecrets) retiring = true
    if (retiring) return leave()
    warmUp()
    tell({ type: 'idle' })
  }

  const destroy = async (socket: Socket, id: string) => {
    if (machineId !== id) return sendMessage(socket, { type: 'gone', machineId: id })
    box?.kill()
    if (current !== null && current.over === undefined) {
      current.run.stop('cancel', 0)
      return // `release` follows the end of the run.
    }
    current?.over?.giveUp.abort()
    await current?.over?.saved
    if (machineId === id) await release()
  }

  let left = false
  const leave = async () => {
    if (left) return
    left = true
    retiring = true
    server.close()
    rmSync(join(config.dir, socketName), { force: true })
    tell({ type: 'leaving' })
    const machines = [warm, box].flatMap(machine => machine ?? [])
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
          if (current?.spec.jobId === message.jobId && current.over === undefined) return
          return sendMessage(socket, {
            type: 'done',
            jobId: message.jobId,
            result: current?.spec.jobId === message.jobId ? (current.over?.result ?? null) : null,
          })
        case 'destroy':
          return void destroy(socket, message.machineId)
        case 'retire':
          if (machineId === null) void leave()
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
      jobId: current?.over === undefined ? (current?.spec.jobId ?? null) : null,
      ...(current?.over && { unsavedJobId: current.spec.jobId }),
      runtime: config.runtime,
    })
  })
  server.listen(socketName, () => {
    process.stdout.write('ready\n')
    warmUp()
  })

  setInterval(() => {
    if (!existsSync(ownDir)) {
      // The home is gone, and with it whoever could want the result.
      current?.run.stop('cancel', 0)
      return void leave()
    }
    const idleMs = performance.now() - idleSince
    if (machineId === null && sockets.size === 0 && idleMs > config.idleSeconds * 1000) void leave()
  }, HOME_CHECK_MS)
}

/** The runner reads commands, and the helper, if there is one, does its work. */
const whenReady = async (box: Box): Promise<void> => {
  const timer = setTimeout(() => box.kill(), BOOT_MS)
  try {
    await box.ready
    if (box.plan.helper !== undefined) await startHelper(box, box.plan.helper)
  } finally {
    clearTimeout(timer)
  }
}

const startHelper = (box: Box, helper: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const off = box.onStatus(line => {
      if (!line.startsWith('proxied ')) return
      off()
      box.spared.add(Number(line.slice('proxied '.length)))
      resolve()
    })
    void box.gone.then(() => reject(new Error('it ended before its network was ready')))
    box.send(helperText(helper))
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
