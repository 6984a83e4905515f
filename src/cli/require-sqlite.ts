import { loadConfig } from '../config/load.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'

/** Backups copy the SQLite database; PostgreSQL has tools of its own. */
export const requireSqlite = ({ home, env }: Pick<Context, 'home' | 'env'>, command: string): void => {
  if (loadConfig(home, env).config.store === undefined) return
  throw new AppError('conflict', `deputy ${command} works with SQLite only; this daemon uses PostgreSQL.`, {
    hint: 'Use pg_dump and pg_restore for the database, and copy the directory blobs: deputy daemon status shows where it is.',
  })
}
