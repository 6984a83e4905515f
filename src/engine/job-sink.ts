import type { Job } from '../jobs/job.ts'
import type { Machine, Sink } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { durably } from './retry-write.ts'

/** Progress is for people: one event a second is plenty, however fast a job prints. */
const PROGRESS_MS = 1000

/** A run may beat as often as it likes; the database hears of it this often. */
const HEARTBEAT_MS = 5000

export interface JobSink extends Sink {
  /** Before the start: what keeps its machine from being ready. */
  waiting(what: string): Promise<void>
  readonly hasStarted: boolean
  /** Milliseconds since the last sign of life; undefined where the runtime never sends one. */
  silence(): number | undefined
}

export interface SinkOptions {
  readonly job: Job
  /** Adds to what is known of the machine, for it to be written. */
  learn(details: Readonly<Record<string, unknown>>): Machine
  onStarted(): void
  /** The start is told again by whoever is asked again. */
  readonly lazyStart?: boolean | undefined
}

/** Where a run reports, durably. */
export const createSink = (
  context: EngineContext,
  { job, learn, onStarted, lazyStart = false }: SinkOptions,
): JobSink => {
  const { store, clock, signals, config, fault } = context
  const keep = { head: config.keep.outputHead, tail: config.keep.outputTail }
  let position = job.position
  let hasStarted = job.state === 'running'
  let lastBeat: number | undefined
  let lastStored = Number.NEGATIVE_INFINITY
  let beat: number | undefined
  let lastProgress = Number.NEGATIVE_INFINITY
  let waitsFor: string | undefined

  const takeBeat = (): { heartbeatAt?: number } => {
    const heartbeatAt = beat
    beat = undefined
    return heartbeatAt === undefined ? {} : { heartbeatAt }
  }

  const tellProgress = async (text: string): Promise<void> => {
    if (job.statusMode === 'simple' || clock.monotonic() - lastProgress < PROGRESS_MS) return
    lastProgress = clock.monotonic()
    await durably(context, () =>
      store.update(job.id, {}, { type: 'progress', at: clock.now(), data: { text } }),
    )
    signals.emit({ jobId: job.id, kind: 'state' })
  }

  return {
    get position() {
      return position
    },
    get hasStarted() {
      return hasStarted
    },
    async waiting(what) {
      if (hasStarted || what === waitsFor) return
      waitsFor = what
      const progress = `waiting: ${what}`
      await durably(context, () =>
        store.update(job.id, { progress }, { type: 'progress', at: clock.now(), data: { text: progress } }),
      )
      signals.emit({ jobId: job.id, kind: 'state' })
    },
    silence: () => (lastBeat === undefined ? undefined : clock.monotonic() - lastBeat),
    async started(at) {
      if (hasStarted) return
      hasStarted = true
      const waited = Math.max(0, clock.now() - (job.provisioningAt ?? at))
      await durably(context, () =>
        store.move(
          job.id,
          'running',
          {
            startedAt: at,
            phases: { provisioning: waited },
            // What its machine waited for is over.
            progress: null,
          },
          { at: clock.now(), data: { reason: 'the command has started' } },
          { lazy: lazyStart },
        ),
      )
      fault('started')
      onStarted()
      signals.emit({ jobId: job.id, kind: 'state' })
    },
    async write({ remember, ...batch }) {
      const also = { ...(remember && { machine: learn(remember) }), ...takeBeat() }
      await durably(context, () => store.appendOutput(job.id, { ...batch, ...also }, keep))
      position = batch.position
      fault('output')
      if (batch.chunks.length > 0) signals.emit({ jobId: job.id, kind: 'output' })
      if (batch.progress !== undefined) await tellProgress(batch.progress)
    },
    heartbeat() {
      lastBeat = clock.monotonic()
      if (lastBeat - lastStored < HEARTBEAT_MS) return
      lastStored = lastBeat
      beat = clock.now()
      // Output is a sign of life as well, and takes it along when it comes in the same breath.
      queueMicrotask(() => {
        const { heartbeatAt } = takeBeat()
        if (heartbeatAt === undefined) return
        store
          .heartbeat(job.id, heartbeatAt)
          .catch(error => context.log.warn({ job: job.id, err: error }, 'heartbeat not stored'))
      })
    },
  }
}
