import type { Job } from '../jobs/job.ts'
import type { Machine, Sink } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { retryWrite } from './retry-write.ts'

/** Progress is for people: one event a second is enough, however fast a job prints. */
const PROGRESS_MS = 1000

/** Minimum interval between two stored heartbeats, however often a run sends them. */
const HEARTBEAT_MS = 5000

export interface JobSink extends Sink {
  /** Reports what the machine waits for before the command starts. */
  waiting(what: string): Promise<void>
  readonly hasStarted: boolean
  /** Undefined before the first heartbeat. */
  msSinceHeartbeat(): number | undefined
}

export interface SinkOptions {
  readonly job: Job
  /** Merges details into the machine record and returns the machine to be written; absent without a machine. */
  addDetails?(details: Readonly<Record<string, unknown>>): Machine
  onStarted(): void
}

/** Stores what a run reports. */
export const createSink = (context: EngineContext, { job, addDetails, onStarted }: SinkOptions): JobSink => {
  const { store, clock, changes, config, fault } = context
  const keep = { head: config.keep.outputHead, tail: config.keep.outputTail }
  let position = job.position
  let hasStarted = job.state === 'running'
  let lastHeartbeat: number | undefined
  let lastStored = Number.NEGATIVE_INFINITY
  let unstoredHeartbeat: number | undefined
  let lastProgress = Number.NEGATIVE_INFINITY
  let lastWait: string | undefined

  const takeHeartbeat = (): { heartbeatAt?: number } => {
    const heartbeatAt = unstoredHeartbeat
    unstoredHeartbeat = undefined
    return heartbeatAt === undefined ? {} : { heartbeatAt }
  }

  const reportProgress = async (text: string): Promise<void> => {
    if (job.statusMode === 'simple' || clock.monotonic() - lastProgress < PROGRESS_MS) return
    lastProgress = clock.monotonic()
    await retryWrite(context, () =>
      store.update(job.id, {}, { type: 'progress', at: clock.now(), data: { text } }),
    )
    changes.emit({ jobId: job.id, kind: 'state' })
  }

  return {
    get position() {
      return position
    },
    get hasStarted() {
      return hasStarted
    },
    async waiting(what) {
      if (hasStarted || what === lastWait) return
      lastWait = what
      const progress = `waiting: ${what}`
      await retryWrite(context, () =>
        store.update(job.id, { progress }, { type: 'progress', at: clock.now(), data: { text: progress } }),
      )
      changes.emit({ jobId: job.id, kind: 'state' })
    },
    msSinceHeartbeat: () => (lastHeartbeat === undefined ? undefined : clock.monotonic() - lastHeartbeat),
    async started(at, { lazy = false } = {}) {
      if (hasStarted) return
      hasStarted = true
      const waited = Math.max(0, clock.now() - (job.provisioningAt ?? at))
      await retryWrite(context, () =>
        store.move(
          job.id,
          'running',
          {
            startedAt: at,
            phases: { provisioning: waited },
            // The wait for the machine has ended.
            progress: null,
          },
          { at: clock.now(), data: { reason: 'the command has started' } },
          { lazy },
        ),
      )
      fault('started')
      onStarted()
      changes.emit({ jobId: job.id, kind: 'state' })
    },
    async write({ remember, ...batch }) {
      const machine = remember && addDetails?.(remember)
      const also = { ...(machine && { machine }), ...takeHeartbeat() }
      await retryWrite(context, () => store.appendOutput(job.id, { ...batch, ...also }, keep))
      position = batch.position
      fault('output')
      if (batch.chunks.length > 0) changes.emit({ jobId: job.id, kind: 'output' })
      if (batch.progress !== undefined) await reportProgress(batch.progress)
    },
    heartbeat() {
      lastHeartbeat = clock.monotonic()
      if (lastHeartbeat - lastStored < HEARTBEAT_MS) return
      lastStored = lastHeartbeat
      unstoredHeartbeat = clock.now()
      // A write of output in the same turn stores the heartbeat with it and saves a write.
      queueMicrotask(() => {
        const { heartbeatAt } = takeHeartbeat()
        if (heartbeatAt === undefined) return
        store
          .heartbeat(job.id, heartbeatAt)
          .catch(error => context.log.warn({ job: job.id, err: error }, 'cannot store a heartbeat'))
      })
    },
  }
}
