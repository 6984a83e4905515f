import type { OutputChunk } from '../jobs/job.ts'
import type { OutputWrite } from '../ports.ts'
import { updateMachine } from './machines-table.ts'
import { bytesOf } from './rows.ts'
import { all, get, run, type Work } from './sql.ts'

/** Small chunks are merged up to this size, so that a job that prints single bytes does not use a row per byte. */
const MAX_ROW_BYTES = 64 * 1024

export function* appendOutput(
  id: string,
  batch: OutputWrite,
  keep: { head: number; tail: number },
): Work<void> {
  if (batch.machine) yield* updateMachine(batch.machine.id, { details: batch.machine.details })
  let added = 0
  for (const chunk of merge(batch.chunks)) {
    const { changes } = yield run(
      'insert into output (job_id, "offset", stream, at, data) values (?, ?, ?, ?, ?) on conflict do nothing',
      id,
      chunk.offset,
      chunk.stream === 'stdout' ? 1 : 2,
      chunk.at,
      chunk.data,
    )
    if (changes > 0) added += chunk.data.length
  }
  yield run(
    `update jobs set output_bytes = max(output_bytes, ?), stored_bytes = stored_bytes + ?, position = ?,
       progress = coalesce(?, progress), heartbeat_at = coalesce(?, heartbeat_at)
     where id = ?`,
    batch.outputBytes,
    added,
    batch.position,
    batch.progress ?? null,
    batch.heartbeatAt ?? null,
    id,
  )
  // A quarter of slack, so that a job with much output is not trimmed at every batch.
  const maxStored = keep.head + keep.tail * 1.25
  // Stored bytes never exceed printed bytes, so most jobs need no query.
  if (batch.outputBytes <= maxStored) return
  const { row } = yield get('select output_bytes, stored_bytes from jobs where id = ?', id)
  if (row !== undefined && Number(row.stored_bytes) > maxStored)
    yield* trim(id, { from: keep.head, to: Number(row.output_bytes) - keep.tail })
}

function* trim(id: string, middle: { from: number; to: number }): Work<void> {
  const { rows: removed } = yield all(
    'delete from output where job_id = ? and "offset" >= ? and "offset" + length(data) <= ? returning length(data) as size',
    id,
    middle.from,
    middle.to,
  )
  const bytes = removed.reduce((sum, row) => sum + Number(row.size), 0)
  yield run('update jobs set stored_bytes = stored_bytes - ? where id = ?', bytes, id)
}

/** Reads at most `maxBytes`. Rows are cut, so that a reader with small pages does not hold whole rows in memory. */
export function* readOutput(id: string, from: number, maxBytes: number): Work<OutputChunk[]> {
  const chunks: OutputChunk[] = []
  let offset = yield* startOfRow(id, from)
  let left = maxBytes
  const rowsAtOnce = maxBytes <= MAX_ROW_BYTES ? 2 : 16
  while (left > 0) {
    const { rows } = yield all(
      `select "offset", stream, at, length(data) as size,
         substr(data, cast(max(0, ? - "offset") + 1 as integer), ?) as data
       from output where job_id = ? and "offset" >= ? order by "offset" limit ?`,
      from,
      left,
      id,
      offset,
      rowsAtOnce,
    )
    for (const row of rows) {
      const start = Number(row.offset)
      offset = start + Number(row.size)
      if (offset <= from) continue
      const data = bytesOf(row.data).subarray(0, left)
      const stream = Number(row.stream) === 1 ? 'stdout' : 'stderr'
      chunks.push({ stream, offset: Math.max(start, from), at: Number(row.at), data })
      left -= data.length
      if (left === 0) return chunks
    }
    if (rows.length < rowsAtOnce) return chunks
  }
  return chunks
}

/** Finds the row that contains byte `from`, so that a cursor may point into a row. */
function* startOfRow(id: string, from: number): Work<number> {
  const { row } = yield get(
    'select "offset" from output where job_id = ? and "offset" <= ? order by "offset" desc limit 1',
    id,
    from,
  )
  return row === undefined ? from : Number(row.offset)
}

/** Joins adjacent chunks of one stream. */
const merge = (chunks: readonly OutputChunk[]): readonly OutputChunk[] => {
  const merged: { first: OutputChunk; parts: Uint8Array[]; size: number }[] = []
  for (const chunk of chunks) {
    const last = merged.at(-1)
    const follows =
      last !== undefined &&
      last.first.stream === chunk.stream &&
      last.first.offset + last.size === chunk.offset &&
      last.size + chunk.data.length <= MAX_ROW_BYTES
    if (follows) {
      last.parts.push(chunk.data)
      last.size += chunk.data.length
    } else merged.push({ first: chunk, parts: [chunk.data], size: chunk.data.length })
  }
  return merged.map(({ first, parts }) =>
    parts.length === 1 ? first : { ...first, data: Buffer.concat(parts) },
  )
}
