import { type Adopted, DAEMON_STATES, type DaemonRecord, type RuntimeSlots } from '../ports/fleet.ts'
import type { MachineRecord } from '../ports/machine.ts'
import { move } from './jobs-table.ts'
import { releaseBlobs } from './retention.ts'
import { oneOf, toJob, toMachine } from './rows.ts'
import { all, get, run, type Work } from './sql.ts'

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
    isDraining: row.draining === true,
    startedAt: Number(row.started_ms),
    leaseUntil: Number(row.lease_ms),
    runtimes: JSON.parse(String(row.runtimes)) as RuntimeSlots[],
    keyId: row.key_id === null ? null : String(row.key_id),
    jobs: Number(row.jobs),
  }))
}

export function* announce(daemon: string, runtimes: readonly RuntimeSlots[]): Work<void> {
  yield run('update daemons set runtimes = ? where id = ?', JSON.stringify(runtimes), daemon)
}

/** Returns false when there is no daemon with that name. */
export function* drain(name: string, draining: boolean): Work<boolean> {
  const { changes } = yield run('update daemons set draining = ? where name = ?', String(draining), name)
  return changes > 0
}

/** The transaction has locked the row of the daemon, so no claim is under way when `drain` has changed it. */
export function* mayClaim(daemon: string): Work<boolean> {
  const { row } = yield get('select 1 from daemons where id = ? and not draining', daemon)
  return row !== undefined
}

/** Machines in one answer. */
const MAX_ABANDONED = 100

/** In random order, so that machines which no daemon can reach do not hide the others. */
export function* abandonedMachines(daemon: string, runtimes: readonly string[]): Work<MachineRecord[]> {
  if (runtimes.length === 0) return []
  const { rows } = yield all(
    `select m.* from machines m join daemons d on d.id = m.daemon
     where d.state <> 'up' and d.lease_until < clock_timestamp()
       and d.key_id = (select key_id from daemons me where me.id = ? and not me.draining)
       and m.runtime in (${runtimes.map(() => '?').join(', ')})
     order by random() limit ${MAX_ABANDONED}`,
    daemon,
    ...runtimes,
  )
  return rows.map(toMachine)
}

/**
 * Locks the row of the earlier daemon: when that daemon registers at the same moment, it either finds its machine gone,
 * or keeps it.
 */
export function* adopt(daemon: string, machineId: string): Work<Adopted | undefined> {
  const { row: from } = yield get(
    `select d.id, d.name from daemons d join machines m on m.daemon = d.id
     where m.id = ? and d.state <> 'up' and d.lease_until < clock_timestamp()
     for update skip locked`,
    machineId,
  )
  if (from === undefined) return undefined
  const { row: machine } = yield get(
    'update machines set daemon = ? where id = ? and daemon = ? returning *',
    daemon,
    machineId,
    String(from.id),
  )
  const { row: job } = yield get(
    `update jobs set daemon = ?
     where machine_id = ? and completed_at is null and state in ('provisioning', 'running') and daemon = ?
     returning *`,
    daemon,
    machineId,
    String(from.id),
  )
  return machine && { machine: toMachine(machine), job: job && toJob(job), from: String(from.name) }
}

/** Jobs in one transaction; the next call takes the rest. */
const MAX_FAILED = 500

/**
 * Fails the jobs of daemons that have been away for longer than this time, and returns their ids. A daemon that
 * registers at the same moment waits for the lock on its row, and then finds its jobs failed.
 */
export function* failAbandoned(waitSeconds: number, at: number): Work<string[]> {
  const { rows } = yield all(
    `select j.id, d.name from jobs j join daemons d on d.id = j.daemon
     where j.completed_at is null and j.state in ('provisioning', 'running')
       and d.state <> 'up' and d.lease_until < clock_timestamp() - make_interval(secs => ?)
     limit ${MAX_FAILED} for update of d skip locked`,
    waitSeconds,
  )
  const failed: string[] = []
  for (const row of rows) {
    const id = String(row.id)
    const reason = `The daemon '${row.name}', which ran the job, was away for more than ${waitSeconds} s.`
    const error = {
      code: 'lost' as const,
      message: reason,
      hint: 'The command may have run, or may still run there. Submit the job again if that does no harm.',
    }
    if ((yield* move(id, 'failed', { completedAt: at, error }, { at, data: { reason } })) === undefined)
      continue
    yield* releaseBlobs(id)
    failed.push(id)
  }
  return failed
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
