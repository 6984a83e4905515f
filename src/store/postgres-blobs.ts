import type { StoreDatabase } from './create-store.ts'
import { isBlobUsed } from './retention.ts'
import { bytesOf } from './rows.ts'
import type { SharedParts } from './shared-blobs.ts'
import { all, get, run, type Work } from './sql.ts'

/**
 * Blobs in PostgreSQL. The content of a hash never changes, so parts do not go through the one connection that writes:
 * a large blob would delay everything else.
 */
export const postgresParts = ({ read, write }: Pick<StoreDatabase, 'read' | 'write'>): SharedParts => ({
  size: sha256 => read(() => size(sha256)),
  write: (sha256, part, data) => read(() => writePart(sha256, part, data)),
  complete: (sha256, bytes) => write(() => complete(sha256, bytes)),
  read: (sha256, part) => read(() => readPart(sha256, part)),
  removeUnused: sha256 => write(() => removeUnused(sha256)),
  listUnused: () => read(listUnused),
})

function* size(sha256: string): Work<number | undefined> {
  const { row } = yield get('select size from blob_files where sha256 = ?', sha256)
  return row && Number(row.size)
}

function* writePart(sha256: string, part: number, data: Uint8Array): Work<void> {
  yield run(
    'insert into blob_parts (sha256, part, data) values (?, ?, ?) on conflict do nothing',
    sha256,
    part,
    data,
  )
}

function* complete(sha256: string, bytes: number): Work<void> {
  yield run('insert into blob_files (sha256, size) values (?, ?) on conflict do nothing', sha256, bytes)
}

function* readPart(sha256: string, part: number): Work<Uint8Array | undefined> {
  const { row } = yield get('select data from blob_parts where sha256 = ? and part = ?', sha256, part)
  return row && bytesOf(row.data)
}

/** The lock orders this with a hold that another daemon is about to take. */
function* removeUnused(sha256: string): Work<void> {
  yield get('select lock_blob(?)', sha256)
  if (yield* isBlobUsed(sha256)) return
  yield run('delete from blob_files where sha256 = ?', sha256)
  yield run('delete from blob_parts where sha256 = ?', sha256)
}

function* listUnused(): Work<string[]> {
  const { rows } = yield all(
    `select sha256 from (select sha256 from blob_files union select sha256 from blob_parts) p
     where not exists (select 1 from artifacts a where a.sha256 = p.sha256)
       and not exists (select 1 from blob_holds h where h.sha256 = p.sha256)`,
  )
  return rows.map(row => String(row.sha256))
}
