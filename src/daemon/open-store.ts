import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { readFleetKey } from '../config/fleet-key.ts'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { installationId } from '../nodes/installation-id.ts'
import type { Blobs, Clock, Fleet, Store } from '../ports.ts'
import { createBlobs } from '../store/blob-store.ts'
import { openStore } from '../store/sqlite-store.ts'
import { VERSION } from '../version.ts'
import { checkDatabase } from './check-database.ts'
import { systemClock } from './system-clock.ts'

interface OpenedStore {
  readonly store: Store
  readonly blobs: Blobs
  readonly clock: Clock
  /** With PostgreSQL: the daemons that share it. */
  readonly fleet?: Fleet
  /** With PostgreSQL: what its daemons have in common. */
  readonly shared?: {
    /** Separates the machines of the fleet from those of others. */
    readonly owner: string
    /** Absent: no daemon takes over the jobs of another. */
    readonly key: Buffer | undefined
  }
  /** Rejects when the daemon must stop: the database is damaged, or it may no longer write to it. */
  readonly failure: Promise<never>
}

interface StoreOptions {
  readonly home: Home
  readonly config: Config
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Opens the database that the configuration names: PostgreSQL, or SQLite in the state directory. */
export const openConfiguredStore = async (options: StoreOptions): Promise<OpenedStore> => {
  const { home, config, log, signal } = options
  if (config.store !== undefined) return openShared(options, config.store)
  const path = join(home.stateDir, 'deputy.db')
  const { damage } = checkDatabase({ path, log, signal })
  // Damage may be found while the daemon is still starting; the daemon handles it when it runs.
  damage.catch(() => {})
  const store = openStore(path)
  return { store, blobs: createBlobs(blobDirectory(home), store), clock: systemClock, failure: damage }
}

const openShared = async ({ home, config, log }: StoreOptions, address: string): Promise<OpenedStore> => {
  const { openPostgresStore } = await import('../store/postgres-store.ts')
  const { shareBlobs } = await import('../store/shared-blobs.ts')
  const key = config.fleet.key === undefined ? undefined : readFleetKey(config.fleet.key)
  const { store, fleet, owner, parts, lost, now } = await openPostgresStore(address, {
    id: installationId(home.stateDir),
    name: config.fleet.name ?? hostname(),
    version: VERSION,
    leaseSeconds: config.fleet.lease,
    keyId: key?.id,
    onFenced: names => log.warn({ daemons: names }, 'daemons did not renew their lease'),
  })
  return {
    ...{ store, fleet, failure: lost },
    shared: { owner, key: key?.sealing },
    blobs: shareBlobs(createBlobs(blobDirectory(home), store), parts),
    // Daemons whose clocks differ must agree on what is due. The server keeps its clock in order.
    clock: { ...systemClock, now, isSynchronized: async () => true },
  }
}

const blobDirectory = (home: Home): string => join(home.stateDir, 'blobs')
