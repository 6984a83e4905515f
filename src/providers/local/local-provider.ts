import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { packFiles } from '../../files/pack-files.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { givenInWorkspace } from '../../jobs/paths.ts'
import { parseSize } from '../../jobs/sizes.ts'
import type { AttachRequest, Blobs, FoundMachine, Machine, Outcome, Provider, Run } from '../../ports.ts'
import type { RunnerHost } from '../../runner/channel.ts'
import type { KeepLimits } from '../../runner/keep-limits.ts'
import { driveRun, type RunOptions, runIdOf } from '../../runner/run.ts'
import type { MachineLimits, ShimStart } from '../../runner/shim-start.ts'
import { startRequest } from '../../runner/start-request.ts'
import { toLocalError } from './local-error.ts'
import { type ShimHost, shimHost } from './shim-channel.ts'
import type { ShimLink } from './shim-link.ts'
import type { ShimPool } from './shim-pool.ts'
import { openShimSession } from './shim-session.ts'

export interface LocalProviderOptions {
  readonly name: string
  /** How many jobs run at once; read for each decision. */
  readonly limit: number
  /** Directory for the logs and results of runs. */
  readonly runsDir: string
  readonly blobs: Blobs
  readonly pool: ShimPool
  readonly defaults: MachineLimits
  readonly keep: KeepLimits
  readonly graceSeconds: number
  readonly check: Provider['check']
  readonly fits: Provider['fits']
  /** `root`: `files` may be below /tmp; `workspace`: only below the workspace. */
  readonly filesLayout: 'root' | 'workspace'
}

/** Implements what the sandbox and host providers share: shims, logs, results, files. */
export const createLocalProvider = (options: LocalProviderOptions): Provider => {
  const { pool, blobs } = options
  const machineDir = (id: string) => join(options.runsDir, id)
  const jobDir = (run: AttachRequest) => join(machineDir(run.machine.id), run.job.id)

  const drive = (run: AttachRequest, host: RunnerHost): RunOptions => ({
    host,
    run,
    // The shim redacts the output, so that no secret gets to the disk.
    context: null,
    blobs,
    keep: options.keep,
    graceSeconds: options.graceSeconds,
    filesDirectory: jobDir(run),
    begun: performance.now(),
  })

  const hostOf = (run: AttachRequest, link: ShimLink | undefined): ShimHost =>
    shimHost({ dir: jobDir(run), link, head: options.keep.head, problem: pool.refusal })

  /** Makes one attempt. It can fail because a free shim may exit just when it is chosen. */
  const attempt = async (run: Run): Promise<{ outcome: Outcome; isRefused: boolean }> => {
    const dir = jobDir(run)
    const link = await acquireShim(run, pool)
    const host = hostOf(run, link)
    try {
      await removeEarlierRuns(machineDir(run.machine.id), run.job.id)
      await mkdir(dir, { recursive: true, mode: 0o700 })
      const start = {
        ...startRequest({ ...options, ...run.command, run }),
        shim: await shimPart(run, dir, options),
      }
      return { outcome: await driveRun({ ...drive(run, host), start }), isRefused: host.isRefused }
    } finally {
      if (!host.isSent || host.isRefused) releaseShim(link, run)
    }
  }

  return {
    name: options.name,
    get slots() {
      return options.limit
    },
    check: options.check,
    fits: options.fits,

    create: async ({ machine, signal }) => {
      signal.throwIfAborted()
      await mkdir(machineDir(machine.id), { recursive: true, mode: 0o700 })
    },

    start: async run => {
      try {
        for (let left = MAX_ATTEMPTS - 1; ; left--) {
          const { outcome, isRefused } = await attempt(run)
          const mayRetry = isRefused && run.manifest.machine === undefined && !run.stop.aborted
          if (left === 0 || !mayRetry) return outcome
        }
      } catch (error) {
        if (run.detach.aborted) return { kind: 'detached' }
        return { kind: 'not-started', error: toLocalError(error) }
      }
    },

    attach: async run => driveRun(drive(run, hostOf(run, await pool.findHolder(run.machine.id)))),

    destroy: async (machine, signal) => {
      const link = await pool.findHolder(machine.id)
      if (link !== undefined) await destroyMachine(link, machine, signal)
      await rm(machineDir(machine.id), { recursive: true, force: true })
    },

    open: async (machine, request, signal) => {
      const link = await pool.findHolder(machine.id)
      if (link === undefined) throw new AppError('not_found', `Machine ${machine.id} has ended.`)
      return openShimSession(pool.socketOf(link), machine.id, request, signal)
    },

    list: async () => {
      const held = (await pool.links()).flatMap(({ machines }) => [...machines.keys()])
      const names = await readdir(options.runsDir).catch(() => [])
      return Promise.all([...new Set([...held, ...names])].map(id => describeMachine(id, machineDir(id))))
    },

    close: () => pool.close(),
  }
}

const MAX_ATTEMPTS = 3

/** A job with `manifest.machine` needs that machine: its workspace exists only there. */
const acquireShim = async (run: Run, pool: ShimPool): Promise<ShimLink> => {
  const { id } = run.machine
  const isAlone = Object.keys(run.command.secrets).length > 0
  if (run.manifest.machine === undefined) return pool.acquire(id, { isAlone, signal: run.detach })
  const link = await pool.findHolder(id)
  const busy = link?.machines.get(id) ?? null
  if (busy !== null)
    throw new AppError(
      'conflict',
      `The kept machine ${id} is busy with the job ${busy.slice(id.length + 1)}.`,
      {
        hint: 'A machine runs one command at a time. Wait for that job, or cancel it.',
      },
    )
  if (link !== undefined) {
    link.machines.set(id, runIdOf(run))
    return link
  }
  throw new AppError('not_found', `The kept machine ${id} is gone, and its workspace with it.`, {
    hint: 'Machines end with their lease and with this computer. Submit the job without machine.',
  })
}

/** Gives up the place in a shim that has received nothing. */
const releaseShim = (link: ShimLink, { machine, manifest }: Run): void => {
  const { machines } = link
  if (manifest.machine === undefined) machines.delete(machine.id)
  else if (machines.has(machine.id)) machines.set(machine.id, null)
  // It was chosen for this job alone.
  if (link.retiring && machines.size === 0) link.send({ kind: 'retire' })
}

/** What a shim must know besides the command. */
const shimPart = async (run: Run, dir: string, options: LocalProviderOptions): Promise<ShimStart> => {
  const { manifest } = run
  const { secrets, format, network, timeoutSeconds, programs } = run.command
  const blob = manifest.workspace?.blob
  const base = blob === undefined ? null : options.blobs.path(blob)
  const files = await packFiles(manifest.files ?? [], dir, options.filesLayout)
  return {
    ...{ dir, secrets, format, network, timeoutSeconds, programs },
    limits: limitsOf(manifest, options.defaults),
    // A kept machine stays after a follow-up job.
    lifecycle: manifest.machine === undefined ? manifest.lifecycle : 'persistent',
    continues: manifest.machine !== undefined,
    inputs: [
      ...(base === null ? [] : [{ path: base, into: 'workspace' as const }]),
      ...(files === undefined ? [] : [{ path: files, into: 'root' as const }]),
    ],
    patchBase: base,
    wantsPatch: manifest.workspace?.patch === true,
    givenFiles: givenInWorkspace(manifest.files),
    artifacts: manifest.artifacts ?? [],
    keep: options.keep,
  }
}

export const limitsOf = (manifest: Manifest, defaults: MachineLimits): MachineLimits => ({
  memory: manifest.resources?.memory === undefined ? defaults.memory : parseSize(manifest.resources.memory),
  disk: manifest.resources?.disk === undefined ? defaults.disk : parseSize(manifest.resources.disk),
  cpu: manifest.resources?.cpu ?? defaults.cpu,
  processes: defaults.processes,
})

/**
 * Removes the logs of earlier jobs in a kept machine; the daemon has stored them. The shim may still be
 * writing the result of the last job there, so removal is retried.
 */
const removeEarlierRuns = async (machineDir: string, jobId: string): Promise<void> => {
  for (const name of await readdir(machineDir).catch(() => []))
    if (name !== jobId)
      await rm(join(machineDir, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 10 })
}

const destroyMachine = (link: ShimLink, machine: Machine, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const settle = (done: () => void) => {
      unlisten()
      signal.removeEventListener('abort', onAbort)
      done()
    }
    const onAbort = () => settle(() => reject(signal.reason))
    const unlisten = link.listen(event => {
      if (event.kind === 'closed' || (event.kind === 'released' && event.workspace === machine.id))
        settle(resolve)
    })
    signal.addEventListener('abort', onAbort, { once: true })
    link.send({ kind: 'release', workspace: machine.id })
  })

const describeMachine = async (id: string, dir: string): Promise<FoundMachine> => {
  const info = await stat(dir).catch(() => undefined)
  return { id, details: {}, ...(info === undefined ? {} : { createdAt: info.birthtimeMs || info.mtimeMs }) }
}
