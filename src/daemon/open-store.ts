import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { installationId } from '../nodes/installation-id.ts'
import type { Store } from '../ports.ts'
import { openStore } from '../store/sqlite-store.ts'
import { checkDatabase } from './check-database.ts'

interface OpenedStore {
  readonly store: Store
  /** Rejects when the daemon must stop: the database is damaged, or another daemon has taken it over. */
  readonly failure: Promise<never>
}

/** Opens the database that the configuration names: PostgreSQL, or SQLite in the state directory. */
export const openConfiguredStore = async (options: {
  home: Home
  config: Config
  log: Logger
  signal: AbortSignal
}): Promise<OpenedStore> => {
  const { home, config, log, signal } = options
  if (config.store !== undefined) {
    const { openPostgresStore } = await import('../store/postgres-store.ts')
    const { store, lost } = await openPostgresStore(config.store, installationId(home.stateDir))
    return { store, failure: lost }
  }
  const path = join(home.stateDir, 'deputy.db')
  const { damage } = checkDatabase({ path, log, signal })
  // Damage may be found while the daemon is still starting; the daemon handles it when it runs.
  damage.catch(() => {})
  return { store: openStore(path), failure: damage }
}
