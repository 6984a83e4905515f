import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import type { Client } from 'pg'
import { AppError } from '../jobs/errors.ts'
import type { Store } from '../ports.ts'
import { createStore, type StoreDatabase } from './create-store.ts'
import { readCounts } from './job-store.ts'
import { ConnectionLost, performOn, toStoreError, unreachable } from './postgres-client.ts'
import { migratePostgres } from './postgres-schema.ts'
import { type PostgresSettings, postgresSettings } from './postgres-settings.ts'
import { createPostgresWriter, type PostgresWriter } from './postgres-writer.ts'

export interface PostgresStore {
  readonly store: Store
  /** Rejects when another daemon has taken over the database; never resolves. */
  readonly lost: Promise<never>
}

/** How long reads wait for a server that restarts. */
const PATIENCE_MS = 60_000
const RETRY_MS = 250

/** Opens the store in PostgreSQL, creates or upgrades its tables, and makes this daemon the one that writes. */
export const openPostgresStore = async (address: string, installation: string): Promise<PostgresStore> => {
  const settings = postgresSettings(address)
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
  const fence = await prepare(connect, settings, installation)
  const writer = createPostgresWriter({ connect, fence, label: settings.label })
  const pool = new pg.Pool({ ...settings.client, max: settings.pool, allowExitOnIdle: true })
  pool.on('error', () => {})
  const database = storeDatabase(writer, pool, settings.label)
  try {
    return { store: createStore(database, await database.read(readCounts)), lost: writer.lost }
  } catch (error) {
    await database.close()
    throw error
  }
}

/** An acknowledged write is on disk, also where the server's default is not to wait for it. */
const DURABLE = `select set_config('synchronous_commit', 'on', false)
  where current_setting('synchronous_commit') = 'off'`

/** Migrates, and returns the fencing token of this daemon. */
const prepare = async (
  connect: () => Promise<Client>,
  settings: PostgresSettings,
  installation: string,
): Promise<string> => {
  let client: Client | undefined
  try {
    client = await connect()
    await migratePostgres(client, settings)
    return await takeOwnership(client, settings, installation)
  } catch (error) {
    const known = toStoreError(error)
    throw known instanceof ConnectionLost ? unreachable(settings.label, known) : known
  } finally {
    await client?.end().catch(() => undefined)
  }
}

/** Replaces an earlier process of this installation; its writes fail from now on. */
const takeOwnership = async (
  client: Client,
  { label, schema }: PostgresSettings,
  installation: string,
): Promise<string> => {
  const { rows } = await client.query<{ fence: string }>(
    `insert into owner as o (id, installation, host, fence) values (1, $1, $2, nextval('fences'))
     on conflict (id) do update set host = excluded.host, fence = excluded.fence
     where o.installation = excluded.installation
     returning fence`,
    [installation, hostname()],
  )
  if (rows[0] !== undefined) return rows[0].fence
  const owner = await client.query<{ host: string }>('select host from owner')
  throw new AppError(
    'conflict',
    `The schema '${schema}' of ${label} belongs to the daemon on ${owner.rows[0]?.host}: several daemons cannot share it yet.`,
    {
      hint: `Set another schema: ?schema=NAME in the setting store. If that daemon is gone for good, copy its state directory and run: psql -c 'delete from ${schema}.owner'`,
    },
  )
}

type Pool = Parameters<typeof performOn>[0] & { end(): Promise<void> }

const storeDatabase = (writer: PostgresWriter, pool: Pool, label: string): StoreDatabase => {
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    await writer.close()
    await pool.end()
  }
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
    close: () => (closing ??= close()),
  }
}
