import { AppError } from '../../jobs/errors.ts'
import type { OutputStream } from '../../jobs/job.ts'
import type { HeldOutput, JobOutput } from '../../output/job-output.ts'
import { createOutputBatch, type OutputBatch } from '../../output/output-batch.ts'
import { REDACTED } from '../../output/redactor.ts'
import type { Sink } from '../../ports.ts'
import type { Reading } from './sealed-output-state.ts'
import type { Details } from './vm-details.ts'

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
  takeText(text: RunnerText): Promise<void>
  /** Flushes held-back output, after `last`; stores the details in the same write. */
  end(last?: RunnerText, remember?: Partial<Details>): Promise<void>
  agent: JobOutput['agentSummary']
  /** Redacts the secrets of the job; redacts the whole text while the secrets are unknown. */
  redact(text: string): string
  readonly sawNoSpace: boolean
}

export interface RunnerText {
  readonly progress?: string | undefined
  readonly output?: string | undefined
  readonly error?: string | undefined
}

export interface OutputReceiverOptions {
  readonly sink: Sink
  readonly outputBytes: number
  /** Returns the secrets and the format of the output. While they are unknown (undefined), frames are refused. */
  read(): Reading | undefined
  /** Returns the details to store with a position, so that output held back survives a restart. */
  keep(position: number, held: HeldOutput | undefined): Partial<Details> | undefined
  now(): number
}

/** Redacts the frames of a machine and writes them to the sink, in order and each byte once. */
export const createOutputReceiver = ({
  sink,
  read,
  keep,
  now,
  outputBytes,
}: OutputReceiverOptions): OutputReceiver => {
  let last: Promise<unknown> = Promise.resolve()
  let opened: OutputBatch | undefined

  const open = (): OutputBatch | undefined => {
    const reading = opened === undefined ? read() : undefined
    if (reading)
      opened = createOutputBatch({
        ...{ sink, outputBytes, now, format: reading.format, held: reading.held },
        secrets: Object.values(reading.secrets),
      })
    return opened
  }

  const need = (): OutputBatch => {
    const batch = open()
    // Without the secrets nothing can be redacted. Refuse; the machine retries.
    if (batch === undefined)
      throw new AppError('unavailable', 'The secrets of the job are not available yet; retry.')
    return batch
  }

  /** Writes nothing when there is nothing new: each write costs an fsync. */
  const write = async (batch: OutputBatch | undefined, remember?: Partial<Details>): Promise<void> => {
    if (!batch?.hasNews && !remember) return
    const next = batch?.take() ?? { position: sink.position, chunks: [], outputBytes }
    await sink.write({ ...next, ...(remember && { remember }) })
  }

  /** Stores the held-back bytes too; without them a few bytes would be lost in a crash. */
  const writeHolding = (batch: OutputBatch): Promise<void> =>
    write(batch, keep(batch.position, batch.output.held()))

  const positionOf = (): number => opened?.position ?? sink.position

  const addText = (text: RunnerText): OutputBatch => {
    const batch = need()
    if (text.output) batch.output.stdout(Buffer.from(text.output))
    if (text.error) batch.output.stderr(Buffer.from(`${text.error}\n`))
    if (text.progress) batch.setProgress(batch.output.redact(text.progress).slice(0, 1024))
    return batch
  }

  /** Serializes calls: a frame that arrives twice at the same time must be taken once. */
  const queue = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }

  return {
    get position() {
      return positionOf()
    },
    get sawNoSpace() {
      return opened?.output.limitErrors.found('disk') ?? false
    },
    redact: text => open()?.output.redact(text) ?? REDACTED,
    agent: () => opened?.output.agentSummary() ?? { usage: null, error: null },
    take: ({ stream, offset, data }) =>
      queue(async () => {
        sink.heartbeat()
        const position = positionOf()
        const known = Math.max(0, position - offset)
        const fresh = known === 0 ? data : data.subarray(Math.min(known, data.length))
        if (fresh.length === 0) return position
        const batch = need()
        batch.advance(Math.max(0, offset - position) + fresh.length)
        batch.output[stream](fresh)
        await writeHolding(batch)
        return batch.position
      }),
    takeText: text =>
      queue(async () => {
        sink.heartbeat()
        await writeHolding(addText(text))
      }),
    end: (last, remember) =>
      queue(async () => {
        const batch = last ? addText(last) : open()
        batch?.output.end()
        await write(batch, remember)
      }),
  }
}
