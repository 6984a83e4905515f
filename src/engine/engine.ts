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
import { acceptJob, type PackDirectory } from './accept-job.ts'
import { type ActiveJobs, createActiveJobs } from './active-jobs.ts'
import { createChangeNotifier } from './change-notifier.ts'
import type { Deputy, ListFilter } from './deputy.ts'
import { createDispatcher } from './dispatcher.ts'
import type { EngineContext } from './engine-context.ts'
import { followEvents, followOutput, waitForStatus } from './follow-job.ts'
import { jobSummary, jobView, machineView } from './job-views.ts'
import { createDisposal } from './machine-disposal.ts'
import { createPool } from './machine-pool.ts'
import { excerpt, lastLines, readPage } from './output-pages.ts'
import type { PlanContext } from './plan-command.ts'
import { probeRuntimes } from './probe-runtimes.ts'
import { recover } from './recover.ts'
import { createReadinessCache, isAwake } from './runtime-readiness.ts'
import { createSweeper } from './sweeper.ts'
import { withUndestroyedMachines } from './undestroyed-machines.ts'

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
  /** Recovers the jobs of an earlier daemon, then starts to claim jobs. */
  start(): Promise<void>
  /** Returns the cached readiness of each runtime. */
  readiness(): { name: string; ready: boolean; reason?: string }[]
  /** Detaches from all jobs without stopping them, and closes the store. */
  close(): Promise<void>
}

const PAGE_JOBS = 20
const RESULT_BYTES = 64 * 1024
const PAGE_BYTES = 256 * 1024
/** How long a request waits for the confirmation that a machine is gone. */
const DESTROY_WAIT_MS = 20_000

export const createEngine = (options: EngineOptions): Engine => {
  const closing = new AbortController()
  // Every run adds a listener, and the number of runs is configurable.
  setMaxListeners(0, closing.signal)
  const runtimes = new Map(options.runtimes.map(runtime => [runtime.name, runtime]))
  const context: EngineContext = {
    ...options,
    runtimes,
    changes: createChangeNotifier(),
    readiness: createReadinessCache(runtimes, options.clock),
    closing: closing.signal,
    fault: options.fault ?? (() => {}),
  }
  const { store, changes, clock } = context
  const disposal = createDisposal(context)
  const dispatcher = createDispatcher(context, (): ActiveJobs => activeJobs)
  const pool = createPool(context, disposal)
  let recovered = false
  const activeJobs = createActiveJobs(context, disposal, () => {
    dispatcher.wake()
    if (recovered) pool.refill()
  })
  const sweeper = createSweeper(context, { activeJobs, disposal, pool })

  const getJob = async (id: string): Promise<Job> => {
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
      const { job, created, position } = await acceptJob(context, options, submission, dispatcher.wake)
      if (created) {
        changes.emit({ jobId: job.id, kind: 'state' })
        dispatcher.wake()
      }
      return created
        ? jobView(job, { queuePosition: position })
        : { ...(await view(job)), deduplicated: true }
    },
    get: async id => view(await getJob(id)),
    wait: async (id, wait) => view(await waitForStatus(changes, () => getJob(id), wait)),
    list: async filter => {
      const limit = Math.min(Math.max(filter.limit ?? PAGE_JOBS, 1), 100)
      const jobs = await store.listJobs({ ...query(filter), limit: limit + 1 })
      const page = jobs.slice(0, limit)
      return { jobs: page.map(jobSummary), next_cursor: jobs.length > limit ? page.at(-1)!.id : null }
    },
    result: async (id, { maxBytes = RESULT_BYTES }) => {
      const job = await getJob(id)
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
      const listener = changes.listen(id)
      const page = await readPage(store, await getJob(id), { cursor, maxBytes }).catch(error => {
        listener.close()
        throw error
      })
      if (page.pieces.length > 0 || page.done || waitMs === 0) {
        listener.close()
        return page
      }
      await listener.wait(waitMs, signal)
      return readPage(store, await getJob(id), { cursor: page.next_cursor, maxBytes })
    },
    follow: (id, { cursor = 0, signal }) =>
      followOutput(
        changes,
        async at => readPage(store, await getJob(id), { cursor: at, maxBytes: PAGE_BYTES }),
        {
          id,
          cursor,
          signal,
        },
      ),
    events: async (id, { after = 0, limit = 1000 }) =>
      store.events({ jobId: (await getJob(id)).id, after, limit }),
    followEvents: request =>
      followEvents(
        changes,
        store,
        request,
        async () => request.id !== undefined && isTerminal((await getJob(request.id)).state),
      ),
    cancel: async (id, by) => {
      const job = await getJob(id)
      if (isTerminal(job.state)) throw alreadyFinished(job)
      const at = clock.now()
      const cancelled = await store.move(
        id,
        'cancelled',
        {
          completedAt: at,
          cancelRequestedAt: at,
          error: { code: 'cancelled', message: 'The job was cancelled before it started.' },
        },
        { at, data: { reason: `cancelled by ${by}` } },
        { from: ['pending'] },
      )
      if (!cancelled) {
        await store.update(id, { cancelRequestedAt: at }, { type: 'cancel_requested', at, data: { by } })
        activeJobs.stop(id, { kind: 'cancel', by })
      }
      changes.emit({ jobId: id, kind: 'state' })
      return view(await getJob(id))
    },
    delete: async id => {
      const job = await getJob(id)
      if (!isTerminal(job.state)) throw stillRunning(job)
      const machine = job.machineId === null ? undefined : await store.getMachine(job.machineId)
      if (machine?.jobId === id && !(await isGoneInTime(disposal.dispose(machine))))
        throw notGoneYet(machine.id)
      for (const blob of (await store.deleteJob(id)) ?? []) await context.blobs.removeUnused(blob)
      changes.emit({ jobId: id, kind: 'state' })
    },
    artifacts: async id => (await getJob(id)).result?.artifacts ?? [],
    openArtifact: async (id, path) => {
      const artifacts = (await getJob(id)).result?.artifacts ?? []
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
      const patch = (await getJob(id)).result?.patch
      if (!patch) throw noPatch(id)
      return { path: 'changes.patch', ...patch, read: range => context.blobs.read(patch.sha256, range) }
    },
    putBlob: source => context.blobs.put(source, parseSize(context.config.limits.upload), 'upload'),
    machines: async () => (await store.listMachines()).map(machine => machineView(machine, whereIs(machine))),
    destroyMachine: async id => {
      const machine = await store.getMachine(id)
      if (machine === undefined) throw noMachine(id)
      if (machine.jobId !== null && activeJobs.has(machine.jobId)) throw machineBusy(id, machine.jobId)
      if (!(await isGoneInTime(disposal.dispose(machine)))) throw notGoneYet(id)
    },
    doctor: async signal => {
      const [readiness, machines] = await Promise.all([
        context.readiness.checkAll(signal),
        store.listMachines(),
      ])
      return readiness.map(one => withUndestroyedMachines(one, machines))
    },
    probe: signal => probeRuntimes(context, { disposal, signal }),
    onChange: changes.onChange,
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
      await recover(context, activeJobs, disposal)
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
      await activeJobs.idle()
      await disposal.idle()
      await Promise.allSettled([...runtimes.values()].map(runtime => runtime.close()))
      await store.close()
    },
  }
}

const isGoneInTime = (disposed: Promise<boolean>): Promise<boolean> =>
  Promise.race([
    disposed,
    new Promise<boolean>(resolve => {
      setTimeout(() => resolve(false), DESTROY_WAIT_MS).unref()
    }),
  ])

const query = ({ status, label, parent, cursor }: ListFilter) => {
  if (status !== undefined && !STATES.includes(status))
    throw new AppError('invalid', `Invalid status '${status}'.`, { hint: `One of: ${STATES.join(', ')}.` })
  if (cursor !== undefined && !isId(cursor))
    throw new AppError('invalid', `Invalid cursor '${cursor}'.`, {
      hint: 'Pass next_cursor of the previous page unchanged.',
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
  new AppError('not_found', `No job '${id}'.`, {
    hint: 'deputy list (the tool list_jobs) shows the jobs. Old jobs are deleted in time.',
  })

const notFinished = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is not finished: it is ${job.state}.`, {
    hint: 'Wait for it (deputy logs -f, or get_job_status with wait_seconds), or read its output so far (stream_job_output).',
  })

const alreadyFinished = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is already finished: ${job.state}.`, {
    hint: 'Read its result: deputy result, or get_job_result.',
  })

const stillRunning = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is ${job.state}; only a finished job can be deleted.`, {
    hint: `deputy cancel ${job.id}`,
  })

const noArtifact = (id: string, path: string, known: readonly string[]): AppError =>
  new AppError('not_found', `Job ${id} has no artifact '${path}'.`, {
    hint:
      known.length > 0
        ? `It has: ${known.slice(0, 10).join(', ')}.`
        : "It has no artifacts: set globs in 'artifacts' when submitting.",
  })

const noPatch = (id: string): AppError =>
  new AppError('not_found', `Job ${id} has no patch.`, {
    hint: "Submit with a workspace and 'patch': true (deputy run --workspace DIR --apply).",
  })

const noMachine = (id: string): AppError =>
  new AppError('not_found', `No machine '${id}'.`, { hint: 'deputy machines' })

const machineBusy = (id: string, jobId: string): AppError =>
  new AppError('conflict', `Machine ${id} is running job ${jobId}.`, { hint: `deputy cancel ${jobId}` })

const notGoneYet = (id: string): AppError =>
  new AppError('unavailable', `Machine ${id} is not destroyed yet; destruction continues.`, {
    hint: 'deputy machines',
  })
