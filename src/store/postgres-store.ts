import { setTimeout } from 'node:timers/promises'
import type { Client, Pool } from 'pg'
import type { Fleet } from '../ports/fleet.ts'
import type { Store } from '../ports.ts'
import { createStore, type StoreDatabase } from './create-store.ts'
import * as daemons from './daemons-table.ts'
import { sharedCounts } from './job-counts.ts'
import { postgresParts } from './postgres-blobs.ts'
import { createChangeFeed } from './postgres-changes.ts'
import { ConnectionLost, performOn, toStoreError, unreachable } from './postgres-client.ts'
import { keepLease } from './postgres-heartbeat.ts'
import { type DaemonIdentity, type Lease, takeLease } from './postgres-lease.ts'
import { migratePostgres } from './postgres-schema.ts'
import { type PostgresSettings, postgresSettings } from './postgres-settings.ts'
import { createPostgresWriter, type PostgresWriter } from './postgres-writer.ts'
import type { SharedParts } from './shared-blobs.ts'

export interface PostgresStore {
  readonly store: Store
  readonly fleet: Fleet
  /** Separates the machines of this fleet from those of others. */
  readonly owner: string
  readonly parts: SharedParts
  /** Rejects when this daemon may no longer write; never resolves. */
  readonly lost: Promise<never>
  /** The wall clock of the database, which all daemons share. */
  now(): number
}

/** How long reads wait for a server that restarts. */
const PATIENCE_MS = 60_000
const RETRY_MS = 250

export interface PostgresOptions extends DaemonIdentity {
  /** Called when this daemon has fenced others, with their names. */
  onFenced?(names: readonly string[]): void
}

/** Opens the store in PostgreSQL, creates or upgrades its tables, and registers this daemon. */
export const openPostgresStore = async (
  address: string,
  { onFenced, ...identity }: PostgresOptions,
): Promise<PostgresStore> => {
  const settings = postgresSettings(address, identity.leaseSeconds)
  // Loaded here, because most installations use SQLite.
  const { default: pg } = await import('pg')
  const connect = async (): Promise<Client> => {
    const client = new pg.Client(settings.client)
    // Without a listener, an error of an idle connection would end the process.
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query(DURABLE)
    } catch (error) {
      await client.end().catch(() => undefined)
      throw toStoreError(error)
    }
    return client
  }
  const lease = await prepare(connect, settings, identity)
  const writer = createPostgresWriter({ connect, lease, label: settings.label })
  const pool = new pg.Pool({ ...settings.client, max: settings.pool, allowExitOnIdle: true })
  pool.on('error', () => {})
  const feed = createChangeFeed({ connect, pool, channel: settings.schema, sender: lease.fence })
  const renewing = keepLease({ lease, write: writer.write, onFenced })
  const closeParts = async (): Promise<void> => {
    await feed.close()
    await renewing.close()
    const stopped = writer.write(() => daemons.markStopped(lease.id)).catch(() => undefined)
    await writer.close()
    await stopped
    await pool.end()
  }
  const database = storeDatabase({ writer, pool, label: settings.label, closeParts })
  return {
    store: createStore(database, {
      daemon: lease.id,
      counts: sharedCounts(database.read),
      mayClaim: () => daemons.mayClaim(lease.id),
    }),
    fleet: {
      daemons: () => database.read(daemons.listDaemons),
      drain: (name, draining) => writer.write(() => daemons.drain(name, draining)),
      abandonedMachines: runtimes => database.read(() => daemons.abandonedMachines(lease.id, runtimes)),
      adopt: machineId => writer.write(() => daemons.adopt(lease.id, machineId)),
      failAbandoned: (waitSeconds, at) => writer.write(() => daemons.failAbandoned(waitSeconds, at)),
      announce: runtimes => writer.write(() => daemons.announce(lease.id, runtimes)),
      publish: feed.publish,
      onChange: feed.onChange,
      cancelRequests: () => database.read(() => daemons.cancelRequests(lease.id)),
    },
    owner: lease.owner,
    parts: postgresParts(database),
    lost: writer.lost,
    now: renewing.now,
  }
}

/** An acknowledged write is on disk, also where the server's default is not to wait for it. */
const DURABLE = `select set_config('synchronous_commit', 'on', false)
  where current_setting('synchronous_commit') = 'off'`

/** Migrates, and registers this daemon. */
const prepare = async (
  connect: () => Promise<Client>,
  settings: PostgresSettings,
  identity: DaemonIdentity,
): Promise<Lease> => {
  let client: Client | undefined
  try {
    client = await connect()
    await migratePostgres(client, settings)
    return await takeLease(client, identity)
  } catch (error) {
    const known = toStoreError(error)
    throw known instanceof ConnectionLost ? unreachable(settings.label, known) : known
  } finally {
    await client?.end().catch(() => undefined)
  }
}

interface DatabaseParts {
  readonly writer: PostgresWriter
  readonly pool: Pool
  readonly label: string
  closeParts(): Promise<void>
}

const storeDatabase = ({ writer, pool, label, closeParts }: DatabaseParts): StoreDatabase => {
  let closing: Promise<void> | undefined
  return {
    read: async work => {
      const deadline = performance.now() + PATIENCE_MS
      for (;;) {
        try {
          return await performOn(pool, work())
        } catch (error) {
          if (!(error instanceof ConnectionLost)) throw error
          if (closing || performance.now() > deadline) throw unreachable(label, error)
          await setTimeout(RETRY_MS)
        }
      }
    },
    write: writer.write,
    // Autovacuum does it.
    compact: async () => {},
    flush: writer.flush,
    close: () => (closing ??= closeParts()),
  }
}
