import { hostname } from 'node:os'
import type { Client } from 'pg'
import { AppError } from '../jobs/errors.ts'
import { all, type Work } from './sql.ts'

/** How a daemon registers. */
export interface DaemonIdentity {
  /** The installation id. */
  readonly id: string
  readonly name: string
  readonly version: string
  readonly leaseSeconds: number
  /** Identifies the key of the fleet, if the daemon has it. */
  readonly keyId?: string | undefined
}

/**
 * The right of a daemon to write. Every transaction checks the fencing token in the row of the daemon, and the lock on
 * that row lasts until the commit. A daemon that fences another changes that row too, so it waits for a transaction
 * under way, and every later transaction is refused. All times are of the clock of the database.
 */
export interface Lease extends DaemonIdentity {
  readonly fence: string
  /** Separates the machines of this fleet from those of others. */
  readonly owner: string
  /** How far the clock of the database is ahead of the local one. */
  readonly clockOffsetMs: number
}

/** Registers the daemon. An earlier process of the same installation can no longer write. */
export const takeLease = async (client: Client, daemon: DaemonIdentity): Promise<Lease> => {
  await client.query('begin')
  try {
    await client.query(
      `select pg_advisory_xact_lock(hashtextextended('deputy daemons ' || current_schema(), 0))`,
    )
    await refuseSameName(client, daemon)
    const { rows } = await client.query<{ fence: string; now: string; owner: string }>(
      `insert into daemons (id, name, host, version, state, fence, lease_until, held_since, started_at, key_id)
       values ($1, $2, $3, $4, 'up', nextval('fences'), clock_timestamp() + make_interval(secs => $5),
         clock_timestamp(), clock_timestamp(), $6)
       on conflict (id) do update set name = excluded.name, host = excluded.host, version = excluded.version,
         state = excluded.state, fence = excluded.fence, lease_until = excluded.lease_until,
         held_since = excluded.held_since, started_at = excluded.started_at, key_id = excluded.key_id
       returning fence, extract(epoch from clock_timestamp()) * 1000 as now, (select owner from fleet) as owner`,
      [daemon.id, daemon.name, hostname(), daemon.version, daemon.leaseSeconds, daemon.keyId ?? null],
    )
    const { fence, now, owner } = rows[0]!
    const clockOffsetMs = Number(now) - Date.now()
    await client.query('commit')
    return { ...daemon, fence, owner, clockOffsetMs }
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

const refuseSameName = async (client: Client, { id, name }: DaemonIdentity): Promise<void> => {
  const { rows } = await client.query<{ host: string }>(
    `select host from daemons where name = $1 and id <> $2 and state = 'up' and lease_until > clock_timestamp()`,
    [name, id],
  )
  if (rows[0] === undefined) return
  throw new AppError('conflict', `Another daemon of the fleet is named '${name}', on ${rows[0].host}.`, {
    hint: 'Give each daemon its own name: fleet.name in the configuration, or DEPUTY_NAME.',
  })
}

/**
 * Renews the lease and stores the name of the transaction; changes no row when the daemon was fenced. A lease that had
 * expired is held anew from now on.
 */
export const renewal = ({ id, fence, leaseSeconds }: Lease, transaction: string): string => `
  update daemons set last_write = '${transaction}',
    held_since = case when lease_until < clock_timestamp() then clock_timestamp() else held_since end,
    lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
  where id = '${id}' and fence = ${fence}`

/**
 * Fences the daemons whose lease has expired, and returns their names. Only a daemon that has held its own lease for a
 * whole term does so: after an outage of the database every lease has expired, and every daemon gets the time to renew.
 */
export function* fenceExpired({ id, leaseSeconds }: Lease): Work<string[]> {
  const { rows } = yield all(
    `update daemons set fence = nextval('fences'), state = 'gone'
     where id in (
       select id from daemons where state = 'up' and id <> ?1 and lease_until < clock_timestamp()
       for update skip locked)
     and exists (
       select 1 from daemons me where me.id = ?1 and me.held_since < clock_timestamp() - make_interval(secs => ?2))
     returning name`,
    id,
    leaseSeconds,
  )
  return rows.map(row => String(row.name))
}

/** The error of a write after this daemon was fenced. It may register again. */
export const leaseLost = (label: string): AppError =>
  new AppError(
    'unavailable',
    `This daemon did not renew its lease in ${label} in time; it registers again.`,
    {
      hint: 'Repeat the call in a few seconds.',
      details: { isLeaseLost: true },
    },
  )

export const isLeaseLost = (error: unknown): boolean =>
  error instanceof AppError && (error.details as { isLeaseLost?: boolean } | undefined)?.isLeaseLost === true

export const takenOver = (label: string): AppError =>
  new AppError('conflict', `Another process of this installation has taken over ${label}; this one stops.`, {
    hint: 'A copy of the state directory was started elsewhere. Delete the file owner in the state directory of the copy.',
  })
