import type { JobView } from '../../src/engine/deputy.ts'

export interface Bar {
  readonly name: string
  /** Milliseconds, and since the submit. */
  readonly ms: number
  readonly start: number
}

type Timed = Pick<JobView, 'phases' | 'created_at' | 'started_at' | 'completed_at' | 'status'>

/**
 * When each phase of a job began and how long it took. Phases tell durations only; their places follow from their
 * order: queue, provisioning with its parts, the command, and what comes after it.
 */
export const phaseBars = (job: Timed, now: number): Bar[] => {
  // `run` is `running` as the machine measured it.
  const { provisioning, running, run: _, collect, destroy, ...parts } = job.phases
  const created = Date.parse(job.created_at)
  const started = job.started_at === null ? undefined : Date.parse(job.started_at)
  const ended = job.completed_at === null ? now : Date.parse(job.completed_at)
  const waited = Math.max(0, (started ?? ended) - created)
  if (started === undefined) return [{ name: 'queued', ms: waited, start: 0 }]

  const sum = Object.values(parts).reduce((total, ms) => total + ms, 0)
  const queued = Math.max(0, waited - (provisioning ?? sum))
  const bars: Bar[] = [{ name: 'queued', ms: queued, start: 0 }]
  if (provisioning !== undefined) bars.push({ name: 'provisioning', ms: provisioning, start: queued })
  let at = queued
  const add = (name: string, ms: number | undefined): void => {
    if (ms === undefined) return
    bars.push({ name, ms, start: at })
    at += ms
  }
  for (const [name, ms] of Object.entries(parts)) add(name, ms)
  at = waited
  add('running', running ?? Math.max(0, ended - started))
  add('collect', collect)
  add('destroy', destroy)
  return bars
}
