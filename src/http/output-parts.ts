import { encodePage } from '../client/wire-output.ts'
import type { OutputPage } from '../engine/deputy.ts'

/** How much of a page is read at once. A client that never reads its answer holds about one part in memory. */
export const PART_BYTES = 64 * 1024

export interface PartsOptions {
  readonly first: OutputPage
  readonly maxBytes: number
  read(cursor: number, maxBytes: number): Promise<OutputPage>
}

/** Whether the first part is the whole page. */
export const isWhole = ({ first, maxBytes }: Pick<PartsOptions, 'first' | 'maxBytes'>): boolean =>
  first.done || dataBytes(first) >= maxBytes || dataBytes(first) < PART_BYTES

/** One page as JSON. Each part is read from the store when the client has taken the part before it. */
export async function* encodeParts({ first, maxBytes, read }: PartsOptions): AsyncGenerator<Uint8Array> {
  let page = encodePage(first)
  let left = maxBytes - dataBytes(first)
  yield Buffer.from(`{"job_id":${JSON.stringify(page.job_id)},"pieces":[${listed(page.pieces)}`)
  while (!page.done && left > 0) {
    const next = await read(page.next_cursor, Math.min(left, PART_BYTES))
    page = encodePage(next)
    left -= dataBytes(next)
    if (page.pieces.length === 0) break
    yield Buffer.from(`,${listed(page.pieces)}`)
  }
  const { status, next_cursor, done } = page
  yield Buffer.from(`],${JSON.stringify({ status, next_cursor, done }).slice(1)}`)
}

const listed = (pieces: readonly unknown[]): string => pieces.map(piece => JSON.stringify(piece)).join(',')

const dataBytes = ({ pieces }: OutputPage): number =>
  pieces.reduce((sum, piece) => sum + ('data' in piece ? piece.data.length : 0), 0)
