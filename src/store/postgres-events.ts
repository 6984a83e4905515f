import type { Client } from 'pg'
import { performOn } from './postgres-client.ts'
import { run, type Statement, type Work } from './sql.ts'

/**
 * Inserts the events of a transaction as its last statement, under a lock that ends with the commit. So events become
 * visible in the order of their numbers, and a follower that has read number 8 never misses number 7 of a transaction
 * that was slower.
 */
export const insertEvents = (client: Client, events: readonly Statement[]): Promise<void> =>
  performOn(client, insert(events))

function* insert(events: readonly Statement[]): Work<void> {
  if (events.length === 0) return
  yield run(`select pg_advisory_xact_lock(hashtextextended('deputy events ' || current_schema(), 0))`)
  // A job may have been deleted later in the same transaction.
  yield run(
    `insert into events (job_id, at, type, data)
     select e.job_id, e.at, e.type, e.data
     from rows from (json_to_recordset(?::json) as (n integer, job_id text, at double precision, type text, data text)) e
     where exists (select 1 from jobs where id = e.job_id) order by n`,
    JSON.stringify(events.map(({ values: [job_id, at, type, data] }, n) => ({ n, job_id, at, type, data }))),
  )
}
