import type { Job } from '../jobs/job.ts'
import { aroundOmission, fromFirstLine, text, upToLastLine } from '../jobs/line-borders.ts'
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

/** Returns the head and the tail of the output as text, cut between lines, with a note on the bytes omitted. */
export const excerpt = async (store: Store, job: Job, maxBytes: number): Promise<Excerpt> => {
  const total = job.outputBytes
  const headBytes = total <= maxBytes ? total : Math.ceil(maxBytes / 2)
  const head = takeContiguous(await store.readOutput(job.id, 0, headBytes), 0, headBytes)
  if (head.end >= total) return { output: head.data.toString('utf8'), truncated: null }
  // The tail usually explains a failure, so it gets all bytes that the head does not use.
  const tailFrom = Math.max(head.end, total - (maxBytes - head.data.length))
  const chunks = await store.readOutput(job.id, tailFrom, maxBytes)
  const first = upToLastLine(head.data)
  const last = fromFirstLine(Buffer.concat(chunks.map(chunk => chunk.data)))
  const skipped = total - first.length - last.length
  return {
    output: aroundOmission(first, skipped, last),
    truncated: { skipped_bytes: skipped, head_bytes: first.length, tail_bytes: last.length },
  }
}

const TAIL_BYTES = 1024

/** Returns the last lines of the output so far, starting at the beginning of a line. */
export const lastLines = async (store: Store, job: Job): Promise<string> => {
  const from = Math.max(0, job.outputBytes - TAIL_BYTES)
  const chunks = await store.readOutput(job.id, from, TAIL_BYTES)
  const data = Buffer.concat(chunks.map(chunk => chunk.data))
  return text(from === 0 ? data : fromFirstLine(data))
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
