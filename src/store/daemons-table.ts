import { DAEMON_STATES, type DaemonRecord, type RuntimeSlots } from '../ports/fleet.ts'
import { oneOf } from './rows.ts'
import { all, run, type Work } from './sql.ts'

/** Statements on the table of daemons, which only PostgreSQL has. */

export function* listDaemons(): Work<DaemonRecord[]> {
  const { rows } = yield all(
    `select d.*, extract(epoch from d.started_at) * 1000 as started_ms,
       extract(epoch from d.lease_until) * 1000 as lease_ms,
       (select count(*) from jobs j
        where j.daemon = d.id and j.completed_at is null and j.state <> 'pending') as jobs
     from daemons d order by d.name, d.id`,
  )
  return rows.map(row => ({
    id: String(row.id),
    name: String(row.name),
    host: String(row.host),
    version: String(row.version),
    state: oneOf(DAEMON_STATES, row.state),
    startedAt: Number(row.started_ms),
    leaseUntil: Number(row.lease_ms),
    runtimes: JSON.parse(String(row.runtimes)) as RuntimeSlots[],
    jobs: Number(row.jobs),
  }))
}

export function* announce(daemon: string, runtimes: readonly RuntimeSlots[]): Work<void> {
  yield run('update daemons set runtimes = ? where id = ?', JSON.stringify(runtimes), daemon)
}

/** The jobs of a daemon that stopped in order keep running, and wait for it. */
export function* markStopped(daemon: string): Work<void> {
  yield run(`update daemons set state = 'stopped' where id = ?`, daemon)
}

export function* cancelRequests(daemon: string): Work<string[]> {
  const { rows } = yield all(
    `select id from jobs
     where daemon = ? and completed_at is null and state <> 'pending' and cancel_requested_at is not null`,
    daemon,
  )
  return rows.map(row => String(row.id))
}
