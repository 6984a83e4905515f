import { AppError } from '../../jobs/errors.ts'
import type { OutputChunk, OutputStream } from '../../jobs/job.ts'
import type { Sink } from '../../ports.ts'
import { createJobOutput, type HeldOutput, type JobOutput } from '../local/job-output.ts'
import { REDACTED } from '../local/redactor.ts'
import type { Details } from './machine-details.ts'
import type { Reading } from './sealed-output-state.ts'

export interface Frame {
  readonly stream: OutputStream
  readonly offset: number
  readonly data: Buffer
}

export interface OutputReceiver {
  /** Bytes of the machine's own log that have arrived for good. */
  readonly position: number
  /** Resolves when the frame is durable; what came before is recognised and left out. */
  take(frame: Frame): Promise<number>
  /** A line of progress or text from a runner of the older kind. */
  tell(text: Told): Promise<void>
  /** What was held back is let out, after any last words; the details are remembered in the same step. */
  end(last?: Told, remember?: Partial<Details>): Promise<void>
  agent: JobOutput['agentSummary']
  /** Takes the secrets of the job out of a text; out of all of it while they are not known. */
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
  /** How to read; undefined while that is not known, and then nothing is taken. */
  read(): Reading | undefined
  /** What is to be remembered together with a position, so that what is held back there survives us. */
  keep(position: number, held: HeldOutput | undefined): Partial<Details> | undefined
  now(): number
}

/** From the frames of a machine to the sink: without secrets, in order, each once. */
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
    // Whoever cannot tell what is secret lets nothing through; the machine comes again.
    if (output === undefined) throw new AppError('unavailable', 'The job cannot be read yet.')
    return output
  }

  const flush = async (remember?: Partial<Details>): Promise<void> => {
    // The end of a job often has nothing to add; a write would cost it a flush of the disk.
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

  /** Without what is held back a few bytes would be missing after a crash, and only then. */
  const flushHolding = (output: JobOutput): Promise<void> => flush(keep(position, output.held()))

  const hear = (text: Told): JobOutput => {
    const output = need()
    if (text.output) output.stdout(Buffer.from(text.output))
    if (text.error) output.stderr(Buffer.from(`${text.error}\n`))
    if (text.progress) progress = output.redact(text.progress).slice(0, 1024)
    return output
  }

  /** One at a time: a frame that comes twice at once must not be taken twice. */
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
