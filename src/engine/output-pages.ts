import type { Job } from '../jobs/job.ts'
import { isTerminal } from '../jobs/states.ts'
import type { Store } from '../ports.ts'
import type { JobResult, OutputPage, OutputPiece } from './deputy.ts'

/** Reads one page of a job's output from a cursor on. Dropped bytes become pieces of their own. */
export const readPage = async (
  store: Store,
  job: Job,
  { cursor, maxBytes }: { cursor: number; maxBytes: number },
): Promise<OutputPage> => {
  const pieces: OutputPiece[] = []
  let next = cursor < 0 ? Math.max(0, job.outputBytes + cursor) : Math.min(cursor, job.outputBytes)
  const chunks = await store.readOutput(job.id, next, maxBytes)
  for (const chunk of chunks) {
    if (chunk.offset > next) pieces.push({ skipped: chunk.offset - next, offset: next })
    pieces.push(chunk)
    next = chunk.offset + chunk.data.length
  }
  const finished = isTerminal(job.state)
  if (finished && chunks.length === 0 && next < job.outputBytes) {
    pieces.push({ skipped: job.outputBytes - next, offset: next })
    next = job.outputBytes
  }
  return {
    job_id: job.id,
    status: job.state,
    pieces,
    next_cursor: next,
    done: finished && next >= job.outputBytes,
  }
}

type Excerpt = Pick<JobResult, 'output' | 'truncated'>

/** Returns the head and the tail of the output as text, with a note on the bytes omitted in between. */
export const excerpt = async (store: Store, job: Job, maxBytes: number): Promise<Excerpt> => {
  const total = job.outputBytes
  const headBytes = total <= maxBytes ? total : Math.ceil(maxBytes / 2)
  const head = takeContiguous(await store.readOutput(job.id, 0, headBytes), 0, headBytes)
  if (head.end >= total) return { output: decode(head.data, 'both'), truncated: null }
  // The tail usually explains a failure, so it gets all bytes that the head does not use.
  const tailFrom = Math.max(head.end, total - (maxBytes - head.data.length))
  const chunks = await store.readOutput(job.id, tailFrom, maxBytes)
  const tail = Buffer.concat(chunks.map(chunk => chunk.data))
  const skipped = total - head.data.length - tail.length
  const output = `${decode(head.data, 'end')}\n[… ${skipped} bytes omitted …]\n${decode(tail, 'start')}`
  return {
    output,
    truncated: { skipped_bytes: skipped, head_bytes: head.data.length, tail_bytes: tail.length },
  }
}

const TAIL_BYTES = 1024

/** Returns the last lines of the output so far, starting at the beginning of a line. */
export const lastLines = async (store: Store, job: Job): Promise<string> => {
  const from = Math.max(0, job.outputBytes - TAIL_BYTES)
  const chunks = await store.readOutput(job.id, from, TAIL_BYTES)
  const text = decode(Buffer.concat(chunks.map(chunk => chunk.data)), 'start')
  return from === 0 ? text : text.slice(text.indexOf('\n') + 1)
}

/** Returns the bytes from `from` up to the first gap, at most `max`. */
const takeContiguous = (
  chunks: readonly { offset: number; data: Uint8Array }[],
  from: number,
  max: number,
) => {
  const parts: Uint8Array[] = []
  let end = from
  for (const chunk of chunks) {
    if (chunk.offset !== end || end - from >= max) break
    const data = chunk.data.subarray(0, max - (end - from))
    parts.push(data)
    end += data.length
  }
  return { data: Buffer.concat(parts), end }
}

/** Decodes UTF-8 and drops a character that is cut at the given side. */
const decode = (data: Uint8Array, cut: 'start' | 'end' | 'both'): string => {
  let from = 0
  let to = data.length
  if (cut === 'start') while (from < Math.min(3, to) && (data[from]! & 0xc0) === 0x80) from += 1
  if (cut === 'end') to = wholeCharactersLength(data)
  return Buffer.from(data.buffer, data.byteOffset + from, Math.max(0, to - from)).toString('utf8')
}

const wholeCharactersLength = (data: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? data.length - back : data.length
  }
  return data.length
}
