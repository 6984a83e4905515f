import type { OutputChunk, OutputStream } from '../jobs/job.ts'
import type { Sink, SinkBatch } from '../ports.ts'
import { createJobOutput, type JobOutput, type JobOutputOptions } from './job-output.ts'

export interface OutputBatchOptions extends Omit<JobOutputOptions, 'write'> {
  readonly sink: Pick<Sink, 'position'>
  /** Bytes that were stored before. */
  readonly outputBytes: number
  now(): number
}

export interface OutputBatch {
  /** Takes what the machine sends; call `advance` for it too. */
  readonly output: JobOutput
  /** Takes output that needs no redaction and no formatting, instead of `output`. */
  add(stream: OutputStream, data: Buffer): void
  /** Bytes of the machine's log that were received. */
  readonly position: number
  /** Bytes that wait to be stored. */
  readonly pendingBytes: number
  advance(bytes: number): void
  /** Bytes that the machine has not kept: a gap in the offsets. */
  skip(bytes: number): void
  setProgress(text: string): void
  /** Whether `take` would return anything new. */
  readonly hasNews: boolean
  /** Returns what was added since the last call, for the sink. */
  take(): SinkBatch
}

/** Larger chunks are not joined, so that a reader never needs a larger buffer. */
const MAX_CHUNK_BYTES = 512 * 1024

/** Its pieces are joined once, when it is taken: to copy it for each piece would leave ten times its size as garbage. */
interface GrowingChunk extends Omit<OutputChunk, 'data'> {
  readonly pieces: Buffer[]
  bytes: number
}

const joined = ({ pieces, bytes, ...chunk }: GrowingChunk): OutputChunk => {
  const [first = Buffer.alloc(0), ...more] = pieces
  return { ...chunk, data: more.length === 0 ? first : Buffer.concat(pieces, bytes) }
}

/** Turns the output that a machine sends into redacted batches for the sink. */
export const createOutputBatch = ({ sink, now, ...options }: OutputBatchOptions): OutputBatch => {
  let { position } = sink
  let taken = position
  let offset = options.outputBytes
  let chunks: GrowingChunk[] = []
  let pendingBytes = 0
  let progress: string | undefined

  const add = (stream: OutputStream, data: Buffer): void => {
    const last = chunks.at(-1)
    const joins = last?.stream === stream && last.offset + last.bytes === offset
    if (joins && last.bytes + data.length < MAX_CHUNK_BYTES) {
      last.pieces.push(data)
      last.bytes += data.length
    } else chunks.push({ stream, offset, at: now(), pieces: [data], bytes: data.length })
    offset += data.length
    pendingBytes += data.length
  }

  const output = createJobOutput({
    ...options,
    write: (kind, data) => {
      if (kind === 'progress') progress = data.toString('utf8')
      else add(kind, data)
    },
  })

  return {
    output,
    add,
    get position() {
      return position
    },
    get pendingBytes() {
      return pendingBytes
    },
    get hasNews() {
      return chunks.length > 0 || progress !== undefined || position !== taken
    },
    advance: bytes => {
      position += bytes
    },
    skip: bytes => {
      // The beginning of a secret cannot be completed across a gap.
      output.flush()
      position += bytes
      offset += bytes
    },
    setProgress: text => {
      progress = text
    },
    take: () => {
      const batch = {
        position,
        chunks: chunks.map(joined),
        outputBytes: offset,
        ...(progress !== undefined && { progress }),
      }
      chunks = []
      pendingBytes = 0
      progress = undefined
      taken = position
      return batch
    },
  }
}
