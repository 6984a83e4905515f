import { encodePage } from '../client/encode-output.ts'
import type { WirePage } from '../client/wire-output.ts'
import type { OutputPage } from '../engine/deputy.ts'

/** How much of a page is read at once. A client that never reads its answer holds about one part in memory. */
export const PART_BYTES = 16 * 1024

export interface PartsOptions {
  readonly first: OutputPage
  readonly maxBytes: number
  read(cursor: number, maxBytes: number): Promise<OutputPage>
}

/** Whether the first part is the whole page. */
export const isWhole = ({ first, maxBytes }: Pick<PartsOptions, 'first' | 'maxBytes'>): boolean =>
  first.done || dataBytes(first) >= maxBytes || dataBytes(first) < PART_BYTES

/** One page as JSON. Each part is read from the store when the client has taken the part before it. */
export const encodeParts = ({ first, maxBytes, read }: PartsOptions): AsyncGenerator<Uint8Array> =>
  writeParts(encodePart(first, `{"job_id":${JSON.stringify(first.job_id)},"pieces":[`), maxBytes, read)

/** Between two parts only encoded bytes are in memory, because a client that does not read stops the loop at `yield`. */
async function* writeParts(
  part: Part,
  maxBytes: number,
  read: PartsOptions['read'],
): AsyncGenerator<Uint8Array> {
  let left = maxBytes
  do {
    yield part.bytes
    left -= part.dataBytes
    if (part.end.done || left <= 0) break
    part = await read(part.end.next_cursor, Math.min(left, PART_BYTES)).then(page => encodePart(page, ','))
  } while (!part.empty)
  yield Buffer.from(`],${JSON.stringify(part.end).slice(1)}`)
}

interface Part {
  readonly bytes: Uint8Array
  readonly dataBytes: number
  readonly empty: boolean
  readonly end: Pick<WirePage, 'status' | 'next_cursor' | 'done'>
}

const encodePart = (page: OutputPage, prefix: string): Part => {
  const { pieces, status, next_cursor, done } = encodePage(page)
  return {
    bytes: Buffer.from(prefix + pieces.map(piece => JSON.stringify(piece)).join(',')),
    dataBytes: dataBytes(page),
    empty: pieces.length === 0,
    end: { status, next_cursor, done },
  }
}

const dataBytes = ({ pieces }: OutputPage): number =>
  pieces.reduce((sum, piece) => sum + ('data' in piece ? piece.data.length : 0), 0)
