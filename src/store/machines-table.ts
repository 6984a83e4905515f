import type { MachineRecord } from '../ports.ts'
import { machineAssignments, toMachine } from './rows.ts'
import { all, get, run, type Work } from './sql.ts'

/** A kept or pool machine that is claimed again keeps its record; only the job and the state change. */
export function* insertMachine(daemon: string, machine: Omit<MachineRecord, 'daemon'>): Work<MachineRecord> {
  const { row } = yield get(
    `insert into machines (id, runtime, job_id, state, details, created_at, lease_until, daemon)
     values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (id) do update set job_id = excluded.job_id, state = excluded.state, daemon = excluded.daemon
     returning *`,
    machine.id,
    machine.runtime,
    machine.jobId,
    machine.state,
    JSON.stringify(machine.details),
    machine.createdAt,
    machine.leaseUntil,
    daemon,
  )
  return toMachine(row!)
}

export function* getMachine(id: string): Work<MachineRecord | undefined> {
  const { row } = yield get('select * from machines where id = ?', id)
  return row && toMachine(row)
}

export function* listMachines(): Work<MachineRecord[]> {
  return (yield all('select * from machines order by created_at')).rows.map(toMachine)
}

export function* ownMachines(daemon: string): Work<MachineRecord[]> {
  const { rows } = yield all('select * from machines where daemon = ? order by created_at', daemon)
  return rows.map(toMachine)
}

export function* updateMachine(
  id: string,
  change: Partial<Omit<MachineRecord, 'id' | 'runtime' | 'daemon'>>,
): Work<void> {
  const { sql, values } = machineAssignments(change)
  if (sql !== '') yield run(`update machines set ${sql} where id = ?`, ...values, id)
}

export function* markDestroying(id: string): Work<MachineRecord | undefined> {
  const { row } = yield get(`update machines set state = 'destroying' where id = ? returning *`, id)
  return row && toMachine(row)
}

/** Has the same guard as the claim: only one of the two can take an idle machine. */
export function* markIdleDestroying(id: string): Work<boolean> {
  const { row } = yield get(
    `update machines set state = 'destroying' where id = ? and state = 'ready' and job_id is null returning id`,
    id,
  )
  return row !== undefined
}

export function* deleteMachine(id: string): Work<void> {
  yield run('delete from machines where id = ?', id)
}
