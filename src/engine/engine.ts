import { setMaxListeners } from 'node:events'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { CheckDirectory } from '../jobs/allowed-directories.ts'
import { AppError } from '../jobs/errors.ts'
import { isId } from '../jobs/ids.ts'
import type { Job } from '../jobs/job.ts'
import { parseSize } from '../jobs/sizes.ts'
import { isTerminal, STATES } from '../jobs/states.ts'
import type { Ballast, Blobs, Clock, MachineRecord, Runtime, Secrets, Store } from '../ports.ts'
import { type PackDirectory, submit } from './accept-job.ts'
import { createRunner, type Runner } from './active-jobs.ts'
import { createSignals } from './change-notifier.ts'
import type { Deputy, ListFilter } from './deputy.ts'
import { createDispatcher } from './dispatcher.ts'
import type { EngineContext } from './engine-context.ts'
import { follow, followEvents, waitFor } from './follow-job.ts'
import { jobSummary, jobView, machineView } from './job-views.ts'
import { createDisposal } from './machine-disposal.ts'
import { createPool } from './machine-pool.ts'
import { excerpt, lastLines, readPage } from './output-pages.ts'
import type { PlanContext } from './plan-command.ts'
import { probeAll } from './probe-runtimes.ts'
import { recover } from './recover.ts'
import { createReadinesses, isAwake } from './runtime-readiness.ts'
import { createSweeper } from './sweeper.ts'
import { withLeftovers } from './undestroyed-machines.ts'

export interface EngineOptions {
  readonly store: Store
  readonly blobs: Blobs
  readonly ballast?: Ballast
  readonly runtimes: readonly Runtime[]
  readonly clock: Clock
  readonly secrets: Secrets
  readonly config: Config
  readonly log: Logger
  readonly locate: PlanContext['locate']
  readonly pack: PackDirectory
  readonly checkDirectory: CheckDirectory
  readonly fault?: EngineContext['fault']
}

export interface Engine {
  readonly deputy: Deputy
  /** Finds again what an earlier daemon left, then begins to take jobs. */
  start(): Promise<void>
  /** What is known of each runtime, without asking it. */
  readiness(): { name: string; ready: boolean; reason?: string }[]
  /** Lets go of all jobs without ending one. */
  close(): Promise<void>
}

const PAGE = 20
const RESULT_BYTES = 64 * 1024
const PAGE_BYTES = 256 * 1024
/** How long a request waits for a machine to be confirmed gone. */
const GONE_MS = 20_000

export const createEngine = (options: EngineOptions): Engine => {
  const closing = new AbortController()
  // Every run listens to it, and their number is the configuration's business.
  setMaxListeners(0, closing.signal)
  const runtimes = new Map(options.runtimes.map(runtime => [runtime.name, runtime]))
  const context: EngineContext = {
    ...options,
    runtimes,
    signals: createSignals(),
    readiness: createReadinesses(runtimes, options.clock),
    closing: closing.signal,
    fault: options.fault ?? (() => {}),
  }
  const { store, signals, clock } = context
  const disposal = createDisposal(context)
  const dispatcher = createDispatcher(context, (): Runner => runner)
  const pool = createPool(context, disposal)
  let recovered = false
  const runner = createRunner(context, disposal, () => {
    dispatcher.kick()
    if (recovered) pool.refill()
  })
  const sweeper = createSweeper(context, { runner, disposal, pool })

  const need = async (id: string): Promise<Job> => {
    const job = isId(id) ? await store.getJob(id) : undefined
    if (job === undefined) throw noJob(id)
    return job
  }
  const whereIs = (machine: MachineRecord | undefined): string | undefined =>
    machine && runtimes.get(machine.runtime)?.where?.(machine)
  const whereRuns = async ({ state, machineId, result }: Job): Promise<string | undefined> => {
    if (machineId === null || isTerminal(state)) return result?.executedOn?.node
    return whereIs(await store.getMachine(machineId))
  }
  const view = async (job: Job) =>
    jobView(job, {
      queuePosition: job.state === 'pending' ? await store.queuePosition(job) : null,
      where: await whereRuns(job),
      ...(job.statusMode === 'streaming' &&
        job.state === 'running' && { outputTail: await lastLines(store, job) }),
    })

  const deputy: Deputy = {
    submit: async (manifest, origin, submitOptions = {}) => {
      const submission = { manifest, origin, ...submitOptions }
      const { job, created, position } = await submit(context, options, submission, dispatcher.kick)
      if (created) {
        signals.emit({ jobId: job.id, kind: 'state' })
        dispatcher.kick()
      }
      return created
        ? jobView(job, { queuePosition: position })
        : { ...(await view(job)), deduplicated: true }
    },
    get: async id => view(await need(id)),
    wait: async (id, wait) => view(await waitFor(signals, () => need(id), wait)),
    list: async filter => {
      const limit = Math.min(Math.max(filter.limit ?? PAGE, 1), 100)
      const jobs = await store.listJobs({ ...query(filter), limit: limit + 1 })
      const page = jobs.slice(0, limit)
      return { jobs: page.map(jobSummary), next_cursor: jobs.length > limit ? page.at(-1)!.id : null }
    },
    result: async (id, { maxBytes = RESULT_BYTES }) => {
      const job = await need(id)
      if (!isTerminal(job.state)) throw notFinished(job)
      const outcome = job.result
      return {
        ...(await view(job)),
        ...(await excerpt(store, job, maxBytes)),
        artifacts: outcome?.artifacts ?? [],
        skipped_artifacts: outcome?.skippedArtifacts ?? [],
        patch: outcome?.patch ?? null,
        usage: outcome?.usage ?? null,
        isolation: outcome?.isolation ?? [],
        limits_hit: outcome?.limitsHit ?? [],
        executed_on: outcome?.executedOn ?? null,
      }
    },
    output: async (id, { cursor = 0, maxBytes = PAGE_BYTES, waitMs = 0, signal }) => {
      const alarm = signals.arm(id)
      const page = await readPage(store, await need(id), { cursor, maxBytes }).catch(error => {
        alarm.disarm()
        throw error
      })
      if (page.pieces.length > 0 || page.done || waitMs === 0) {
        alarm.disarm()
        return page
      }
      await alarm.wait(waitMs, signal)
      return readPage(store, await need(id), { cursor: page.next_cursor, maxBytes })
    },
    follow: (id, { cursor = 0, signal }) =>
      follow(signals, async at => readPage(store, await need(id), { cursor: at, maxBytes: PAGE_BYTES }), {
        id,
        cursor,
        signal,
      }),
    events: async (id, { after = 0, limit = 1000 }) =>
      store.events({ jobId: (await need(id)).id, after, limit }),
    followEvents: request =>
      followEvents(
        signals,
        store,
        request,
        async () => request.id !== undefined && isTerminal((await need(request.id)).state),
      ),
    cancel: async (id, by) => {
      const job = await need(id)
      if (isTerminal(job.state)) throw alreadyFinished(job)
      const at = clock.now()
      const cancelled = await store.move(
        id,
        'cancelled',
        {
          completedAt: at,
          cancelRequestedAt: at,
          error: { code: 'cancelled', message: 'It was cancelled before it started.' },
        },
        { at, data: { reason: `cancelled by ${by}` } },
        { from: ['pending'] },
      )
      if (!cancelled) {
        await store.update(id, { cancelRequestedAt: at }, { type: 'cancel_requested', at, data: { by } })
        runner.stop(id, { kind: 'cancel', by })
      }
      signals.emit({ jobId: id, kind: 'state' })
      return view(await need(id))
    },
    delete: async id => {
      const job = await need(id)
      if (!isTerminal(job.state)) throw stillRunning(job)
      const machine = job.machineId === null ? undefined : await store.getMachine(job.machineId)
      if (machine?.jobId === id && !(await gone(disposal.dispose(machine)))) throw notGoneYet(machine.id)
      for (const blob of (await store.deleteJob(id)) ?? []) await context.blobs.removeUnused(blob)
      signals.emit({ jobId: id, kind: 'state' })
    },
    artifacts: async id => (await need(id)).result?.artifacts ?? [],
    openArtifact: async (id, path) => {
      const artifacts = (await need(id)).result?.artifacts ?? []
      const artifact = artifacts.find(one => one.path === path)
      if (artifact === undefined)
        throw noArtifact(
          id,
          path,
          artifacts.map(one => one.path),
        )
      return { ...artifact, read: range => context.blobs.read(artifact.sha256, range) }
    },
    openPatch: async id => {
      const patch = (await need(id)).result?.patch
      if (!patch) throw noPatch(id)
      return { path: 'changes.patch', ...patch, read: range => context.blobs.read(patch.sha256, range) }
    },
    putBlob: source => context.blobs.put(source, parseSize(context.config.limits.upload), 'upload'),
    machines: async () => (await store.listMachines()).map(machine => machineView(machine, whereIs(machine))),
    destroyMachine: async id => {
      const machine = await store.getMachine(id)
      if (machine === undefined) throw noMachine(id)
      if (machine.jobId !== null && runner.has(machine.jobId)) throw machineBusy(id, machine.jobId)
      if (!(await gone(disposal.dispose(machine)))) throw notGoneYet(id)
    },
    doctor: async signal => {
      const [readiness, machines] = await Promise.all([
        context.readiness.checkAll(signal),
        store.listMachines(),
      ])
      return readiness.map(one => withLeftovers(one, machines))
    },
    probe: signal => probeAll(context, { disposal, signal }),
    onChange: signals.onChange,
    stats: async () => {
      const oldest = await store.oldestPending()
      const machines: Record<string, number> = {}
      for (const { runtime, state } of await store.listMachines())
        machines[`${runtime}/${state}`] = (machines[`${runtime}/${state}`] ?? 0) + 1
      return {
        jobs: store.counts(),
        machines,
        oldest_pending_seconds: oldest === null ? 0 : Math.max(0, clock.now() - oldest) / 1000,
      }
    },
  }

  return {
    deputy,
    start: async () => {
      await context.blobs.removeUnfinished()
      await recover(context, runner, disposal)
      recovered = true
      void context.readiness.checkAll(closing.signal)
      dispatcher.start()
      pool.refill()
      sweeper.start()
    },
    readiness: () =>
      [...runtimes.values()].filter(isAwake).map(({ name }) => {
        const known = context.readiness.known(name)
        const failed = known?.checks.find(check => check.status === 'failed')
        return { name, ready: known?.ready ?? true, ...(failed && { reason: failed.message }) }
      }),
    close: async () => {
      closing.abort()
      await dispatcher.idle()
      await runner.idle()
      await disposal.idle()
      await Promise.allSettled([...runtimes.values()].map(runtime => runtime.close()))
      await store.close()
    },
  }
}

const gone = (disposed: Promise<boolean>): Promise<boolean> =>
  Promise.race([
    disposed,
    new Promise<boolean>(resolve => {
      setTimeout(() => resolve(false), GONE_MS).unref()
    }),
  ])

const query = ({ status, label, parent, cursor }: ListFilter) => {
  if (status !== undefined && !STATES.includes(status))
    throw new AppError('invalid', `'${status}' is not a status.`, { hint: `One of: ${STATES.join(', ')}.` })
  if (cursor !== undefined && !isId(cursor))
    throw new AppError('invalid', `The cursor '${cursor}' is not one of ours.`, {
      hint: 'Pass next_cursor of the page before, unchanged.',
    })
  return {
    ...(status !== undefined && { status }),
    ...(label !== undefined && { label: labelQuery(label) }),
    ...(parent !== undefined && { parentId: parent }),
    ...(cursor !== undefined && { before: cursor }),
  }
}

const labelQuery = (label: string): { name: string; value?: string } => {
  const equals = label.indexOf('=')
  return equals === -1 ? { name: label } : { name: label.slice(0, equals), value: label.slice(equals + 1) }
}

const noJob = (id: string): AppError =>
  new AppError('not_found', `There is no job '${id}'.`, {
    hint: 'deputy list (the tool list_jobs) shows the jobs. Old ones are forgotten in time.',
  })

const notFinished = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is not finished: it is ${job.state}.`, {
    hint: 'Wait for it (deputy logs -f, or get_job_status with wait_seconds), or read its output so far (stream_job_output).',
  })

const alreadyFinished = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is finished already: ${job.state}.`, {
    hint: 'Its result can be read: deputy result, or get_job_result.',
  })

const stillRunning = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is ${job.state}; only a finished job can be deleted.`, {
    hint: `deputy cancel ${job.id}`,
  })

const noArtifact = (id: string, path: string, known: readonly string[]): AppError =>
  new AppError('not_found', `Job ${id} brought back no artifact '${path}'.`, {
    hint:
      known.length > 0
        ? `It has: ${known.slice(0, 10).join(', ')}.`
        : "It has none: name globs in 'artifacts' when submitting.",
  })

const noPatch = (id: string): AppError =>
  new AppError('not_found', `Job ${id} has no patch.`, {
    hint: "Submit with a workspace and 'patch': true (deputy run --workspace DIR --apply).",
  })

const noMachine = (id: string): AppError =>
  new AppError('not_found', `There is no machine '${id}'.`, { hint: 'deputy machines lists them.' })

const machineBusy = (id: string, jobId: string): AppError =>
  new AppError('conflict', `Machine ${id} is running job ${jobId}.`, { hint: `deputy cancel ${jobId}` })

const notGoneYet = (id: string): AppError =>
  new AppError('unavailable', `Machine ${id} is not gone yet; destroying it goes on.`, {
    hint: 'deputy machines tells when it is gone.',
  })
