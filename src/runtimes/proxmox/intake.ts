import type { OutputChunk, OutputStream } from '../../jobs/job.ts'
import type { Sink } from '../../ports.ts'
import { createOutput, type Output } from '../local/output.ts'

export interface Frame {
  readonly stream: OutputStream
  readonly offset: number
  readonly data: Buffer
}

export interface Intake {
  /** Bytes of the machine's own log that have arrived for good. */
  readonly position: number
  /** Resolves when the frame is durable; what came before is recognised and left out. */
  take(frame: Frame): Promise<number>
  /** A line of progress or text from a runner of the older kind. */
  tell(text: { progress?: string; output?: string }): Promise<void>
  end(): Promise<void>
  agent: Output['agent']
  readonly sawNoSpace: boolean
}

interface IntakeOptions {
  readonly sink: Sink
  readonly outputBytes: number
  readonly secrets: Readonly<Record<string, string>>
  readonly format: 'text' | 'claude-stream-json'
  now(): number
}

/** From the frames of a machine to the sink: without secrets, in order, each once. */
export const createIntake = ({ sink, secrets, format, now, ...start }: IntakeOptions): Intake => {
  let position = sink.position
  let outputBytes = start.outputBytes
  let chunks: OutputChunk[] = []
  let progress: string | undefined
  let last: Promise<unknown> = Promise.resolve()

  const output = createOutput({
    secrets,
    format,
    now,
    onWrite: () => {},
    spool: {
      end: 0,
      get outputBytes() {
        return outputBytes
      },
      write: (kind, data, at) => {
        if (kind === 'progress') progress = Buffer.from(data).toString('utf8')
        else {
          chunks.push({ stream: kind, offset: outputBytes, data: Buffer.from(data), at })
          outputBytes += data.length
        }
      },
      close: () => {},
    },
  })

  const flush = async (): Promise<void> => {
    const batch = { position, chunks, outputBytes, ...(progress === undefined ? {} : { progress }) }
    chunks = []
    progress = undefined
    await sink.write(batch)
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
      return output.symptoms.saw('disk')
    },
    agent: () => output.agent(),
    take: ({ stream, offset, data }) =>
      queue(async () => {
        sink.heartbeat()
        const known = Math.max(0, position - offset)
        const fresh = data.subarray(Math.min(known, data.length))
        if (fresh.length === 0) return position
        position = Math.max(position, offset) + fresh.length
        output[stream](fresh)
        await flush()
        return position
      }),
    tell: text =>
      queue(async () => {
        sink.heartbeat()
        if (text.output) output.stdout(Buffer.from(text.output))
        if (text.progress) progress = text.progress.slice(0, 1024)
        await flush()
      }),
    end: () =>
      queue(async () => {
        output.end()
        await flush()
      }),
  }
}
