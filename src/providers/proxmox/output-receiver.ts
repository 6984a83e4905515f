import { AppError } from '../../jobs/errors.ts'
import type { OutputChunk, OutputStream } from '../../jobs/job.ts'
import { REDACTED } from '../../output/redactor.ts'
import type { Sink } from '../../ports.ts'
import { createJobOutput, type HeldOutput, type JobOutput } from '../local/job-output.ts'
import type { Details } from './machine-details.ts'
import type { Reading } from './sealed-output-state.ts'

interface Frame {
  readonly stream: OutputStream
  readonly offset: number
  readonly data: Buffer
}

export interface OutputReceiver {
  /** The number of bytes of the machine's log that are durable here. */
  readonly position: number
  /** Resolves when the frame is durable. Bytes that were received before are skipped. */
  take(frame: Frame): Promise<number>
  /** Takes progress or text from an older runner (the /callback routes). */
  tell(text: Told): Promise<void>
  /** Flushes held-back output, after `last`; stores the details in the same write. */
  end(last?: Told, remember?: Partial<Details>): Promise<void>
  agent: JobOutput['agentSummary']
  /** Redacts the secrets of the job; redacts the whole text while the secrets are unknown. */
  redact(text: string): string
  readonly sawNoSpace: boolean
}

export interface Told {
  readonly progress?: string | undefined
  readonly output?: string | undefined
  readonly error?: string | undefined
}

interface OutputReceiverOptions {
  readonly sink: Sink
  readonly outputBytes: number
  /** The secrets and format of the output; undefined while unknown, and then frames are refused. */
  read(): Reading | undefined
  /** Details to store with a position, so that held-back output survives a restart. */
  keep(position: number, held: HeldOutput | undefined): Partial<Details> | undefined
  now(): number
}

/** Writes the frames of a machine to the sink: redacted, in order, each byte once. */
export const createOutputReceiver = ({
  sink,
  read,
  keep,
  now,
  ...start
}: OutputReceiverOptions): OutputReceiver => {
  let position = sink.position
  let outputBytes = start.outputBytes
  let chunks: OutputChunk[] = []
  let progress: string | undefined
  let last: Promise<unknown> = Promise.resolve()
  let opened: JobOutput | undefined

  const spool = {
    end: 0,
    get outputBytes() {
      return outputBytes
    },
    write: (kind: OutputStream | 'progress', data: Uint8Array, at: number) => {
      if (kind === 'progress') progress = Buffer.from(data).toString('utf8')
      else {
        chunks.push({ stream: kind, offset: outputBytes, data, at })
        outputBytes += data.length
      }
    },
    close: () => {},
  }

  const open = (): JobOutput | undefined => {
    const reading = opened === undefined ? read() : undefined
    if (reading) opened = createJobOutput({ ...reading, spool, now, onWrite: () => {} })
    return opened
  }

  const need = (): JobOutput => {
    const output = open()
    // Without the secrets nothing can be redacted. Refuse; the machine retries.
    if (output === undefined)
      throw new AppError('unavailable', 'The secrets of the job are not available yet; retry.')
    return output
  }

  const flush = async (remember?: Partial<Details>): Promise<void> => {
    // Skip empty writes: each one costs an fsync.
    if (chunks.length === 0 && progress === undefined && position === sink.position && !remember) return
    const batch = {
      position,
      chunks,
      outputBytes,
      ...(progress !== undefined && { progress }),
      ...(remember && { remember }),
    }
    chunks = []
    progress = undefined
    await sink.write(batch)
  }

  /** Stores the held-back bytes too; without them a few bytes would be lost in a crash. */
  const flushHolding = (output: JobOutput): Promise<void> => flush(keep(position, output.held()))

  const hear = (text: Told): JobOutput => {
    const output = need()
    if (text.output) output.stdout(Buffer.from(text.output))
    if (text.error) output.stderr(Buffer.from(`${text.error}\n`))
    if (text.progress) progress = output.redact(text.progress).slice(0, 1024)
    return output
  }

  /** Serializes calls: a frame that arrives twice at the same time must be taken once. */
  const queue = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }

  return {
    get position() {
      return position
    },
    get sawNoSpace() {
      return opened?.limitErrors.found('disk') ?? false
    },
    redact: text => open()?.redact(text) ?? REDACTED,
    agent: () => opened?.agentSummary() ?? { usage: null, error: null },
    take: ({ stream, offset, data }) =>
      queue(async () => {
        sink.heartbeat()
        const known = Math.max(0, position - offset)
        const fresh = known === 0 ? data : data.subarray(Math.min(known, data.length))
        if (fresh.length === 0) return position
        const output = need()
        position = Math.max(position, offset) + fresh.length
        output[stream](fresh)
        await flushHolding(output)
        return position
      }),
    tell: text =>
      queue(async () => {
        sink.heartbeat()
        await flushHolding(hear(text))
      }),
    end: (last, remember) =>
      queue(async () => {
        const output = last ? hear(last) : open()
        output?.end()
        await flush(remember)
      }),
  }
}
