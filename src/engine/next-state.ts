import { type AppError, isAtCapacity } from '../jobs/errors.ts'
import type { Job, JobError, JobOutcome } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { JobState } from '../jobs/states.ts'
import type { Exit, JobChanges, Outcome, StopReason } from '../ports.ts'

export interface Transition {
  readonly to: JobState
  readonly change: JobChanges
  readonly reason: string
}

/**
 * Decides the next state of a job from the outcome of its run. A pure function with all rules for endings and retries.
 */
export const nextState = (
  job: Job,
  manifest: Manifest,
  outcome: Exclude<Outcome, { kind: 'detached' }>,
  { now, stopReason }: { now: number; stopReason: StopReason | null },
): Transition => {
  if (outcome.kind !== 'exit' && stopReason !== null) return endedByStop(stopReason, job, now)
  switch (outcome.kind) {
    case 'exit':
      return exited(outcome.exit, job, now)
    case 'not-started':
      if (job.state === 'running') return lostRun(job, manifest, startForgotten, now)
      if (isAtCapacity(outcome.error)) return requeue(job, outcome.error.message, now)
      if (isNodeUnavailable(manifest, outcome.error)) return requeueForNode(job, outcome.error.message, now)
      if (outcome.error.retryable && job.attempts <= manifest.retries)
        return retry(job, outcome.error.message, now)
      return failed(
        {
          code: 'machine',
          message: outcome.error.message,
          ...(outcome.error.hint !== undefined && { hint: outcome.error.hint }),
        },
        now,
      )
    case 'lost':
      return lostRun(job, manifest, outcome.error, now)
  }
}

/** The database has the start of the command, the machine does not: a power cut lost the start marker. */
const startForgotten = {
  message: 'The command had started, but its machine has no record of it, as after a power cut.',
}

const lostRun = (
  job: Job,
  manifest: Manifest,
  { message, hint }: Pick<AppError, 'message'> & Partial<Pick<AppError, 'hint'>>,
  now: number,
): Transition => {
  if (manifest.retryStarted && job.attempts <= manifest.retries) return retry(job, message, now)
  return failed(
    {
      code: 'lost',
      message,
      hint:
        hint ??
        "The command had started, so it was not run again. Submit it again, or set 'retryStarted' if a second run is safe.",
    },
    now,
  )
}

/**
 * Exponential backoff, up to a minute. The next run has its own start time and output stream; its output is appended to
 * that of the earlier run.
 */
const retry = (job: Job, why: string, now: number): Transition => ({
  to: 'pending',
  change: {
    notBefore: now + Math.min(60_000, 500 * 2 ** job.attempts),
    machineId: null,
    startedAt: null,
    progress: null,
    ...(job.startedAt !== null && { queueUntil: null }),
    position: 0,
    outputBase: job.outputBytes,
  },
  reason: `attempt ${job.attempts} failed: ${why}`,
})

/** No attempt was made, so it is not counted. */
const requeue = (job: Job, why: string, now: number): Transition => ({
  to: 'pending',
  change: { notBefore: now, machineId: null, attempts: Math.max(0, job.attempts - 1) },
  reason: `still waiting: ${why}`,
})

/** A job that requires one node can run nowhere else, so it waits for that node until its queue timeout. */
const isNodeUnavailable = (manifest: Manifest, error: AppError): boolean =>
  manifest.requires?.node !== undefined &&
  error.retryable &&
  (error.code === 'unavailable' || error.code === 'timeout')

/** The delay grows with the age of the job, up to half a minute. */
const requeueForNode = (job: Job, why: string, now: number): Transition => {
  const transition = requeue(job, why, now)
  const pause = Math.min(30_000, Math.max(500, (now - job.createdAt) / 4))
  return {
    ...transition,
    change: { ...transition.change, notBefore: now + pause, progress: `waiting: ${why}` },
  }
}

const exited = (exit: Exit, job: Job, now: number): Transition => {
  const result: JobOutcome = {
    artifacts: exit.artifacts,
    skippedArtifacts: exit.skippedArtifacts,
    patch: exit.patch,
    usage: exit.usage,
    isolation: exit.isolation,
    limitsHit: exit.limitsHit,
    ...(exit.resources && { resources: exit.resources }),
    ...(exit.executedOn && { executedOn: exit.executedOn }),
    ...(exit.image && { image: exit.image }),
  }
  const { to, error } = exit.stopped === null ? exitStatus(exit) : stopStatus(exit.stopped, job)
  return {
    to,
    change: {
      completedAt: now,
      startedAt: job.startedAt ?? exit.startedAt,
      exitCode: exit.code,
      signal: exit.signal,
      error,
      result,
      phases: { ...exit.phases, running: Math.max(0, exit.endedAt - exit.startedAt) },
    },
    reason: error?.message ?? 'the command exited with code 0',
  }
}

const stopStatus = (stopped: StopReason['kind'], job: Job): { to: JobState; error: JobError } => {
  switch (stopped) {
    case 'cancel':
      return { to: 'cancelled', error: { code: 'cancelled', message: 'The job was cancelled.' } }
    case 'timeout':
      return {
        to: 'timeout',
        error: {
          code: 'timeout',
          message: `The job exceeded its timeout of ${job.timeoutSeconds} s and was stopped.`,
          hint: "Set a longer 'timeout', or check the output for what the job was waiting for.",
        },
      }
    case 'stale':
      return {
        to: 'failed',
        error: { code: 'stale', message: 'The machine stopped sending heartbeats and was given up.' },
      }
  }
}

const exitStatus = (exit: Exit): { to: JobState; error: JobError | null } => {
  if (exit.code === 0 && exit.agentError === null) return { to: 'success', error: null }
  const ending =
    exit.signal === null
      ? `The command exited with code ${exit.code}.`
      : `The command was killed by ${exit.signal}.`
  if (exit.limitsHit.length > 0)
    return {
      to: 'failed',
      error: { code: 'limit', message: `${ending} Limit hit: ${exit.limitsHit.join('; ')}.` },
    }
  if (exit.agentError !== null) return { to: 'failed', error: { code: 'agent', message: exit.agentError } }
  return { to: 'failed', error: { code: exit.signal === null ? 'exit_code' : 'signal', message: ending } }
}

/** The job was stopped and its machine reported no exit. */
const endedByStop = (stopReason: StopReason, job: Job, now: number): Transition => {
  const { to, error } = stopStatus(stopReason.kind, job)
  return { to, change: { completedAt: now, error }, reason: `${stopReason.kind} by ${stopReason.by}` }
}

const failed = (error: JobError, now: number): Transition => ({
  to: 'failed',
  change: { completedAt: now, error },
  reason: error.message,
})
