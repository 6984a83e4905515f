import { type AppError, isAtCapacity } from '../jobs/errors.ts'
import type { Job, JobError, JobOutcome } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { JobState } from '../jobs/states.ts'
import type { Exit, JobChanges, Outcome, StopReason } from '../ports.ts'

export interface Verdict {
  readonly to: JobState
  readonly change: JobChanges
  readonly reason: string
}

/** What an outcome means for a job. Pure: the whole policy of endings and retries is here. */
export const verdict = (
  job: Job,
  manifest: Manifest,
  outcome: Exclude<Outcome, { kind: 'detached' }>,
  { now, asked }: { now: number; asked: StopReason | null },
): Verdict => {
  if (outcome.kind !== 'exit' && asked !== null) return ended(asked, job, now)
  switch (outcome.kind) {
    case 'exit':
      return settled(outcome.exit, job, now)
    case 'not-started':
      if (job.state === 'running') return lost(job, manifest, forgotten, now)
      if (isAtCapacity(outcome.error)) return waitsOn(job, outcome.error.message, now)
      if (isNodeAway(manifest, outcome.error)) return waitsForNode(job, outcome.error.message, now)
      if (outcome.error.retryable && job.attempts <= manifest.retries)
        return again(job, outcome.error.message, now)
      return failed(
        {
          code: 'machine',
          message: outcome.error.message,
          ...(outcome.error.hint !== undefined && { hint: outcome.error.hint }),
        },
        now,
      )
    case 'lost':
      return lost(job, manifest, outcome.error, now)
  }
}

/** The database knows of the start, the machine does not: a power cut took the marker with it. */
const forgotten = { message: 'It had started, and its machine lost every trace of it, as after a power cut.' }

const lost = (
  job: Job,
  manifest: Manifest,
  { message, hint }: Pick<AppError, 'message'> & Partial<Pick<AppError, 'hint'>>,
  now: number,
): Verdict => {
  if (manifest.retryStarted && job.attempts <= manifest.retries) return again(job, message, now)
  return failed(
    {
      code: 'lost',
      message,
      hint:
        hint ??
        "It had started, so it was not run again. Submit it again, or set 'retryStarted' where that is safe.",
    },
    now,
  )
}

/**
 * Waits longer each time, up to a minute; a machine that failed at once rarely works at once. The next run has its
 * own start and its own stream; what the earlier one printed stays before it.
 */
const again = (job: Job, why: string, now: number): Verdict => ({
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
  reason: `attempt ${job.attempts} failed before its end: ${why}`,
})

/** Nothing was tried, so nothing is counted. */
const waitsOn = (job: Job, why: string, now: number): Verdict => ({
  to: 'pending',
  change: { notBefore: now, machineId: null, attempts: Math.max(0, job.attempts - 1) },
  reason: `it goes on waiting: ${why}`,
})

/** A job that names its node can run nowhere else: it waits for the node, up to its time in the queue. */
const isNodeAway = (manifest: Manifest, error: AppError): boolean =>
  manifest.requires?.node !== undefined &&
  error.retryable &&
  (error.code === 'unavailable' || error.code === 'timeout')

/** Tried often at first, later every half minute. */
const waitsForNode = (job: Job, why: string, now: number): Verdict => {
  const verdict = waitsOn(job, why, now)
  const pause = Math.min(30_000, Math.max(500, (now - job.createdAt) / 4))
  return { ...verdict, change: { ...verdict.change, notBefore: now + pause, progress: `waiting: ${why}` } }
}

const settled = (exit: Exit, job: Job, now: number): Verdict => {
  const result: JobOutcome = {
    artifacts: exit.artifacts,
    skippedArtifacts: exit.skippedArtifacts,
    patch: exit.patch,
    usage: exit.usage,
    isolation: exit.isolation,
    limitsHit: exit.limitsHit,
    ...(exit.executedOn && { executedOn: exit.executedOn }),
  }
  const { to, error } = exit.stopped === null ? judgeEnd(exit) : judgeStop(exit.stopped, job)
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

const judgeStop = (stopped: StopReason['kind'], job: Job): { to: JobState; error: JobError } => {
  switch (stopped) {
    case 'cancel':
      return { to: 'cancelled', error: { code: 'cancelled', message: 'It was cancelled.' } }
    case 'timeout':
      return {
        to: 'timeout',
        error: {
          code: 'timeout',
          message: `It ran longer than its timeout of ${job.timeoutSeconds} s and was ended.`,
          hint: "Set a longer 'timeout', or look at the output for what it was waiting for.",
        },
      }
    case 'stale':
      return {
        to: 'failed',
        error: { code: 'stale', message: 'Its machine stopped sending signs of life and was given up.' },
      }
  }
}

const judgeEnd = (exit: Exit): { to: JobState; error: JobError | null } => {
  if (exit.code === 0 && exit.agentError === null) return { to: 'success', error: null }
  const ending =
    exit.signal === null
      ? `The command exited with code ${exit.code}.`
      : `The command was ended by ${exit.signal}.`
  if (exit.limitsHit.length > 0)
    return {
      to: 'failed',
      error: { code: 'limit', message: `${ending} Limit hit: ${exit.limitsHit.join('; ')}.` },
    }
  if (exit.agentError !== null) return { to: 'failed', error: { code: 'agent', message: exit.agentError } }
  return { to: 'failed', error: { code: exit.signal === null ? 'exit_code' : 'signal', message: ending } }
}

/** It was to be ended, and its machine told nothing more. */
const ended = (asked: StopReason, job: Job, now: number): Verdict => {
  const { to, error } = judgeStop(asked.kind, job)
  return { to, change: { completedAt: now, error }, reason: `${asked.kind} by ${asked.by}` }
}

const failed = (error: JobError, now: number): Verdict => ({
  to: 'failed',
  change: { completedAt: now, error },
  reason: error.message,
})
