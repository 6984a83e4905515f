import { createDeadline } from '../jobs/deadline.ts'
import { AppError, toAppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { AttachRequest, Machine, Outcome, Runtime, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { createSink, type JobSink } from './job-sink.ts'
import { planCommand, withNetwork } from './plan-command.ts'
import { checkSecretUse, secretUse } from './secret-policy.ts'
import { watchdog } from './watchdog.ts'

export interface Supervised {
  readonly job: Job
  readonly manifest: Manifest
  readonly machine: Machine
  readonly runtime: Runtime
  /** `attach` never starts anything: the command may be running since before this daemon. */
  readonly mode: 'start' | 'attach'
  readonly stop: AbortController
}

/** Stays with one job from its machine to the end of its command. Never throws: all that happens is an outcome. */
export const supervise = async (context: EngineContext, supervised: Supervised): Promise<Outcome> => {
  const { job, stop } = supervised
  const guard = watchdog(context, job, stop)
  const known = knowledge(supervised.machine)
  const sink = createSink(context, {
    job,
    learn: known.learn,
    onStarted: guard.started,
    lazyStart: supervised.runtime.remembersStart,
  })
  if (supervised.runtime.outlivesSilence !== true) guard.watch(sink)
  try {
    const outcome = await Promise.race([drive(context, { ...supervised, known, sink }), guard.gaveUp])
    context.fault('exited')
    return outcome
  } catch (thrown) {
    if (context.closing.aborted) return { kind: 'detached' }
    const error = toAppError(thrown)
    if (error.code === 'internal')
      context.log.error({ job: job.id, err: thrown }, 'a run failed unexpectedly')
    return { kind: sink.hasStarted ? 'lost' : 'not-started', error }
  } finally {
    guard.end()
  }
}

/** What is known of a machine, from its record on. */
const knowledge = (record: Machine) => {
  let machine = record
  return {
    machine: () => machine,
    learn: (details: Readonly<Record<string, unknown>>): Machine => {
      machine = { ...machine, details: { ...machine.details, ...details } }
      return machine
    },
  }
}

interface Driven extends Supervised {
  readonly known: ReturnType<typeof knowledge>
  readonly sink: JobSink
}

const drive = async (
  context: EngineContext,
  { job, manifest, runtime, mode, stop, known, sink }: Driven,
): Promise<Outcome> => {
  const remember = async (more: Record<string, unknown>): Promise<void> => {
    const { id, details } = known.learn(more)
    await context.store.updateMachine(id, { details })
  }
  const request = (): AttachRequest => ({
    job,
    manifest,
    machine: known.machine(),
    sink,
    stop: stop.signal,
    detach: context.closing,
    remember,
  })
  if (mode === 'attach') {
    const found = await runtime.attach(request())
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
  const whole = withNetwork(manifest, plan)
  const deadline = createDeadline(
    [stop.signal, context.closing],
    context.config.supervision.provisioning * 1000,
  )
  let took: Readonly<Record<string, number>> = {}
  const timed = (phases: typeof took): void => {
    took = phases
  }
  const waiting = (what: string): void =>
    void sink
      .waiting(what)
      .catch(error => context.log.warn({ job: job.id, err: error }, 'a wait is not told'))
  await runtime
    .provision({
      machine: known.machine(),
      manifest: whole,
      remember,
      waiting,
      timed,
      signal: deadline.signal,
    })
    .catch(async (error: unknown) => {
      await context.store.update(job.id, { phases: took })
      if (error instanceof AppError) throw error
      // Whoever is interrupted throws the reason, which is an answer and not a defect.
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
    return await runtime.start({ ...request(), manifest: whole, command: { ...plan, secrets } })
  } finally {
    // Whoever still holds the command holds no values any more.
    for (const name of Object.keys(secrets)) delete secrets[name]
  }
}

const stopped = (reason: StopReason): AppError =>
  new AppError('unavailable', `It was ended before it started (${reason.kind} by ${reason.by}).`, {
    retryable: false,
  })

const notReady = ({ config }: EngineContext, cause: unknown): AppError =>
  new AppError('timeout', `Its machine was not ready within ${config.supervision.provisioning} s.`, {
    hint: 'deputy doctor tells what is wrong with the runtime; supervision.provisioning is the limit.',
    cause,
  })
