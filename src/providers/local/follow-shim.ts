import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import type { OutputChunk } from '../../jobs/job.ts'
import type { AttachRequest, Outcome, StopReason } from '../../ports.ts'
import { tenths } from '../../runner/client.ts'
import { runIdOf } from '../../runner/run.ts'
import type { RunResult } from '../../runner/run-result.ts'
import { readResult, readStarted } from './job-state-files.ts'
import type { ShimLink } from './shim-link.ts'
import type { Frame } from './spool-frames.ts'
import { openSpoolReader } from './spool-reader.ts'

export interface FollowShimOptions {
  readonly run: AttachRequest
  /** The job's directory. */
  readonly dir: string
  /** Absent when the shim has finished already. */
  readonly link?: ShimLink
  /** Sends the start message, once the listener for the answer is set up. */
  sendStart?(link: ShimLink): void
  readonly graceSeconds: number
  /** Bytes of output after which the reader may pause. */
  readonly head: number
}

export type FollowResult =
  | { readonly kind: 'finished'; readonly result: RunResult }
  /** The shim exited or is in use. Nothing was started, so another shim may try. */
  | { readonly kind: 'refused'; readonly error: AppError }
  | Exclude<Outcome, { kind: 'exit' | 'not-started' }>

/** Pause after a batch this large: the job prints faster than people read, and the middle may be dropped. */
const EAGER_BYTES = 128 * 1024
const PAUSE_MS = 40

/** Copies the log of one job from the shim's files to the sink, until the job ends or `detach` is aborted. */
export const followShim = async ({
  run,
  dir,
  link,
  sendStart,
  graceSeconds,
  head,
}: FollowShimOptions): Promise<FollowResult> => {
  const reader = openSpoolReader(dir, run.sink.position)
  const wake = createWakeSignal()
  let finished = link === undefined
  let refused: AppError | undefined
  let sentResult: RunResult | undefined
  let startedAt: number | undefined

  const runId = runIdOf(run)
  const unlisten = link?.listen(event => {
    if (event.kind === 'closed') finished = true
    else if (!('run' in event) || event.run !== runId) return
    else if (event.kind === 'started') startedAt = event.at ?? Date.now()
    else if (event.kind === 'done') {
      sentResult = event.result
      finished = true
    } else if (event.kind === 'refused') {
      refused = event.error ? AppError.fromBody(event.error) : new AppError('unavailable', event.reason)
      // The shim is not free as assumed: do not choose it again.
      if (refused.code === 'unavailable' && link !== undefined) link.retiring = true
      finished = true
    }
    run.sink.heartbeat()
    wake.ring()
  })
  const onStop = () => {
    const { kind: why } = run.stop.reason as StopReason
    link?.send({ kind: 'stop', run: runId, why, graceTenths: tenths(graceSeconds) })
  }
  run.detach.addEventListener('abort', wake.ring)
  run.stop.addEventListener('abort', onStop)
  if (sendStart === undefined) link?.send({ kind: 'follow', run: runId, from: 0 })
  else if (link !== undefined) sendStart(link)
  if (run.stop.aborted) onStop()

  try {
    // After a restart the shim does not repeat `started`: read the start marker.
    if (sendStart === undefined) startedAt = await readStarted(dir)
    let reportedStart = false
    for (;;) {
      const last = finished
      if (run.detach.aborted) return { kind: 'detached' }
      if (!reportedStart && (startedAt !== undefined || last)) {
        startedAt ??= await readStarted(dir)
        if (startedAt !== undefined) {
          reportedStart = true
          await run.sink.started(startedAt)
        }
      }
      const frames = await reader.next()
      if (frames.length > 0) {
        const bytes = await deliver(run, frames, reader.position)
        if (bytes >= EAGER_BYTES && reader.position > head && !finished) await delay(PAUSE_MS)
      } else if (last) break
      else await wake.wait()
    }
  } finally {
    unlisten?.()
    run.detach.removeEventListener('abort', wake.ring)
    run.stop.removeEventListener('abort', onStop)
    await reader.close()
  }
  if (refused !== undefined) return { kind: 'refused', error: refused }
  return sentResult === undefined ? resultFromFiles(dir) : { kind: 'finished', result: sentResult }
}

const deliver = async (run: AttachRequest, frames: readonly Frame[], position: number): Promise<number> => {
  const chunks: OutputChunk[] = []
  let progress: string | undefined
  let outputBytes = 0
  let bytes = 0
  for (const frame of frames) {
    const offset = run.job.outputBase + frame.offset
    outputBytes = offset
    if (frame.kind === 'progress') {
      progress = Buffer.from(frame.data).toString('utf8')
      continue
    }
    outputBytes += frame.data.length
    bytes += frame.data.length
    const previous = chunks.at(-1)
    const joins = previous?.stream === frame.kind && previous.offset + previous.data.length === offset
    if (joins) chunks[chunks.length - 1] = { ...previous, data: Buffer.concat([previous.data, frame.data]) }
    else chunks.push({ stream: frame.kind, offset, data: frame.data, at: frame.at })
  }
  await run.sink.write({ position, chunks, outputBytes, ...(progress === undefined ? {} : { progress }) })
  return bytes
}

/**
 * Reads the result. Without one, the start marker decides whether the job is lost or was never started. `refusal`: why
 * a shim that may hold the job cannot be asked.
 */
export const resultFromFiles = async (dir: string, refusal?: string): Promise<FollowResult> => {
  const result = await readResult(dir)
  if (result !== undefined) return { kind: 'finished', result }
  if ((await readStarted(dir)) === undefined)
    return {
      kind: 'refused',
      error: new AppError(
        'unavailable',
        'The process that holds the job ended before the command was started.',
      ),
    }
  return {
    kind: 'lost',
    error:
      refusal === undefined
        ? new AppError('internal', 'The process that held the job ended, and the job with it.', {
            hint: 'It was killed from outside, or the computer was restarted. Submit the job again.',
          })
        : new AppError('unsupported', `The process that holds the job cannot be asked. ${refusal}`, {
            hint: 'The command may still run: it ends with its timeout. Submit the job again.',
          }),
  }
}

/** Waits for the next event. An event that arrives before `wait` is not lost. */
const createWakeSignal = () => {
  let rung = false
  let resume: (() => void) | undefined
  return {
    ring: () => {
      rung = true
      resume?.()
    },
    wait: async () => {
      if (!rung)
        await new Promise<void>(resolve => {
          resume = resolve
        })
      rung = false
      resume = undefined
    },
  }
}
