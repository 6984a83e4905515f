import { createDeadline } from '../jobs/deadline.ts'
import { AppError, toAppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { AttachRequest, Machine, Outcome, Provider, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { createSink, type JobSink, type SinkOptions } from './job-sink.ts'
import { planCommand, withNetwork } from './plan-command.ts'
import { type BatchOptions, runBatch } from './run-batch.ts'
import { checkSecretUse, secretUse } from './secret-policy.ts'
import { createWatchdog } from './watchdog.ts'

export interface Supervised {
  readonly job: Job
  readonly manifest: Manifest
  readonly machine: Machine
  readonly provider: Provider
  /** `attach` never starts a command: it may be running since before this daemon started. */
  readonly mode: 'start' | 'attach'
  readonly stop: AbortController
}

/** Supervises one job from provisioning to the exit of its command. Never throws: every failure becomes an outcome. */
export const superviseJob = (context: EngineContext, supervised: Supervised): Promise<Outcome> => {
  const { job, stop } = supervised
  const tracked = trackDetails(supervised.machine)
  return supervise(context, {
    job,
    stop,
    addDetails: tracked.add,
    work: sink => provisionAndRun(context, { ...supervised, tracked, sink }),
  })
}

/** Supervises a batch. Each of its jobs is supervised as well. */
export const superviseBatch = (
  context: EngineContext,
  batches: BatchOptions,
  { job, manifest, mode, stop }: Omit<Supervised, 'machine' | 'provider'>,
): Promise<Outcome> =>
  supervise(context, {
    job,
    stop,
    work: sink =>
      runBatch(
        batches,
        { job, manifest, sink, stop: stop.signal, detach: context.closing },
        mode === 'attach',
      ),
  })

interface Supervision extends Pick<SinkOptions, 'addDetails'> {
  readonly job: Job
  readonly stop: AbortController
  work(sink: JobSink): Promise<Outcome>
}

const supervise = async (
  context: EngineContext,
  { job, stop, work, ...sinkOptions }: Supervision,
): Promise<Outcome> => {
  const watchdog = createWatchdog(context, job, stop)
  const sink = createSink(context, { job, onStarted: watchdog.started, ...sinkOptions })
  watchdog.watch(sink)
  try {
    const outcome = await Promise.race([work(sink), watchdog.gaveUp])
    context.fault('exited')
    return outcome
  } catch (thrown) {
    if (context.closing.aborted) return { kind: 'detached' }
    const error = toAppError(thrown)
    if (error.code === 'internal') context.log.error({ job: job.id, err: thrown }, 'run failed unexpectedly')
    return { kind: sink.hasStarted ? 'lost' : 'not-started', error }
  } finally {
    watchdog.end()
  }
}

/** Collects the details of a machine, starting with those in its record. */
const trackDetails = (record: Machine) => {
  let machine = record
  return {
    machine: () => machine,
    add: (details: Readonly<Record<string, unknown>>): Machine => {
      machine = { ...machine, details: { ...machine.details, ...details } }
      return machine
    },
  }
}

interface TrackedRun extends Supervised {
  readonly tracked: ReturnType<typeof trackDetails>
  readonly sink: JobSink
}

const provisionAndRun = async (
  context: EngineContext,
  { job, manifest, provider, mode, stop, tracked, sink }: TrackedRun,
): Promise<Outcome> => {
  const remember = async (more: Record<string, unknown>): Promise<void> => {
    const { id, details } = tracked.add(more)
    await context.store.updateMachine(id, { details })
  }
  const request = (): AttachRequest => ({
    job,
    manifest,
    machine: tracked.machine(),
    sink,
    stop: stop.signal,
    detach: context.closing,
    remember,
  })
  // The providers read the workspace as a file; another daemon may have received it.
  if (manifest.workspace?.blob !== undefined) await context.blobs.fetch(manifest.workspace.blob)
  if (mode === 'attach') {
    const found = await provider.attach(request())
    if (found.kind !== 'unfinished') return found
  }

  const plan = planCommand(manifest, {
    jobId: job.id,
    presets: context.config.agents,
    secretNames: context.secrets.names(),
    timeoutSeconds: job.timeoutSeconds,
    claudeBaseUrl: context.config.claude.baseUrl,
    locate: context.locate,
  })
  // The configuration may have changed since the job was submitted.
  checkSecretUse(plan.secretNames, secretUse(manifest, plan, job), context.config.secrets)
  const manifestWithNetwork = withNetwork(manifest, plan)
  const deadline = createDeadline(
    [stop.signal, context.closing],
    context.config.supervision.provisioning * 1000,
  )
  let phases: Readonly<Record<string, number>> = {}
  const timed = (reported: typeof phases): void => {
    phases = reported
  }
  const waiting = (what: string): void =>
    void sink
      .waiting(what)
      .catch(error => context.log.warn({ job: job.id, err: error }, 'cannot store what the job waits for'))
  await provider
    .create({
      machine: tracked.machine(),
      manifest: manifestWithNetwork,
      remember,
      waiting,
      timed,
      signal: deadline.signal,
    })
    .catch(async (error: unknown) => {
      await context.store.update(job.id, { phases })
      if (error instanceof AppError) throw error
      // An aborted call throws the abort reason. That is the result of a stop, not a defect.
      if (stop.signal.aborted) throw stopped(stop.signal.reason as StopReason)
      throw deadline.expired ? notReady(context, error) : error
    })
    .finally(deadline.clear)
  context.fault('provisioned')
  if (context.closing.aborted) return { kind: 'detached' }
  if (stop.signal.aborted) return { kind: 'not-started', error: stopped(stop.signal.reason as StopReason) }
  const secrets = await context.secrets.resolve(plan.secretNames, stop.signal)
  context.fault('starting')
  try {
    return await provider.start({
      ...request(),
      manifest: manifestWithNetwork,
      command: { ...plan, secrets },
    })
  } finally {
    // Remove the secret values from memory, also for code that still references the command.
    for (const name of Object.keys(secrets)) delete secrets[name]
  }
}

const stopped = (reason: StopReason): AppError =>
  new AppError('unavailable', `The job was stopped before it started (${reason.kind} by ${reason.by}).`, {
    retryable: false,
  })

const notReady = ({ config }: EngineContext, cause: unknown): AppError =>
  new AppError('timeout', `The machine was not ready within ${config.supervision.provisioning} s.`, {
    hint: 'deputy doctor shows what is wrong with the runtime. The limit is supervision.provisioning.',
    cause,
  })
