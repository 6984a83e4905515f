import type { MachineRecord } from '../ports.ts'
import type { Database } from './database.ts'
import { machineAssignments, toMachine } from './rows.ts'

/** A kept or pool machine that is claimed again keeps its record; only the job and the state change. */
export const insertMachine = (database: Database, machine: MachineRecord): MachineRecord => {
  const row = database.get(
    `insert into machines (id, runtime, job_id, state, details, created_at, lease_until)
     values (?, ?, ?, ?, ?, ?, ?)
     on conflict (id) do update set job_id = excluded.job_id, state = excluded.state
     returning *`,
    machine.id,
    machine.runtime,
    machine.jobId,
    machine.state,
    JSON.stringify(machine.details),
    machine.createdAt,
    machine.leaseUntil,
  )
  return toMachine(row!)
}

export const getMachine = (database: Database, id: string): MachineRecord | undefined => {
  const row = database.get('select * from machines where id = ?', id)
  return row && toMachine(row)
}

export const listMachines = (database: Database): MachineRecord[] =>
  database.all('select * from machines order by created_at').map(toMachine)

export const updateMachine = (
  database: Database,
  id: string,
  change: Partial<Omit<MachineRecord, 'id' | 'runtime'>>,
): void => {
  const { sql, values } = machineAssignments(change)
  if (sql !== '') database.run(`update machines set ${sql} where id = ?`, ...values, id)
}

export const condemnMachine = (database: Database, id: string): MachineRecord | undefined => {
  const row = database.get(`update machines set state = 'destroying' where id = ? returning *`, id)
  return row && toMachine(row)
}

/** Has the same guard as the claim: only one of the two can take an idle machine. */
export const retireMachine = (database: Database, id: string): boolean =>
  database.get(
    `update machines set state = 'destroying' where id = ? and state = 'ready' and job_id is null returning id`,
    id,
  ) !== undefined

export const forgetMachine = (database: Database, id: string): void => {
  database.run('delete from machines where id = ?', id)
}
