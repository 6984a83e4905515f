import type { ClientConfig } from 'pg'
import { AppError } from '../jobs/errors.ts'

export interface PostgresSettings {
  readonly client: ClientConfig
  readonly schema: string
  /** Connections for reads; writes have one of their own. */
  readonly pool: number
  /** Names the database in errors, without the password. */
  readonly label: string
}

const MAX_POOL = 50

/** Reads `?schema=` and `?pool=` from the URL. The rest, such as `sslmode` and `sslrootcert`, is for the driver. */
export const postgresSettings = (address: string, leaseSeconds: number): PostgresSettings => {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined) throw invalid('is not a URL')
  const schema = take(url, 'schema') ?? 'deputy'
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) throw invalid(`has the invalid schema name '${schema}'`)
  const pool = Number(take(url, 'pool') ?? 4)
  if (!Number.isInteger(pool) || pool < 1 || pool > MAX_POOL)
    throw invalid(`needs a pool of 1 to ${MAX_POOL} connections`)
  return {
    client: {
      connectionString: url.href,
      application_name: 'deputy',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
      // A connection that was cut without notice ends after this time, on both sides.
      query_timeout: 30_000,
      // A daemon that was suspended in a transaction must not keep its locks for longer than its lease.
      idle_in_transaction_session_timeout: leaseSeconds * 1000,
      options: `-c search_path=${schema}`,
    },
    schema,
    pool,
    label: withoutPassword(url).href,
  }
}

const take = (url: URL, name: string): string | null => {
  const value = url.searchParams.get(name)
  url.searchParams.delete(name)
  return value
}

const withoutPassword = (url: URL): URL => {
  const copy = new URL(url)
  copy.password = ''
  copy.search = ''
  return copy
}

const invalid = (problem: string): AppError =>
  new AppError('invalid', `The setting store ${problem}.`, {
    hint: 'Write it as postgres://USER@HOST/DATABASE?schema=deputy. deputy config explain shows where it is set.',
  })
