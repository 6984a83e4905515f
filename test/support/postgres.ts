import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { until } from './engine.ts'

const DEBIAN = '/usr/lib/postgresql'
const NOBODY = 65_534
export const SOCKET = '.s.PGSQL.5432'

const binaries = (): string | undefined =>
  (existsSync(DEBIAN) ? readdirSync(DEBIAN) : [])
    .sort((a, b) => Number(b) - Number(a))
    .map(version => join(DEBIAN, version, 'bin'))
    .find(bin => existsSync(join(bin, 'initdb')))

export const missingPostgres = (): string | undefined =>
  binaries() === undefined ? 'PostgreSQL is not installed (apt-get install postgresql)' : undefined

export interface PostgresServer {
  /** The address of a schema, through the socket in another directory if one is named. */
  url(schema: string, socketDirectory?: string): string
  readonly socket: string
  query(sql: string): Promise<Record<string, unknown>[]>
  start(): Promise<void>
  /** Ends all connections: `SIGINT` in order, `SIGQUIT` at once, as a crash does. */
  stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void>
  remove(): Promise<void>
}

/** A server of its own in a temporary directory, on a Unix socket. PostgreSQL refuses root, so root starts it as nobody. */
export const startPostgres = async (): Promise<PostgresServer> => {
  const bin = binaries() ?? ''
  // Not below TMPDIR: nobody may not enter it.
  const directory = mkdtempSync('/tmp/deputy-pg-')
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'deputy', '-A', 'trust', '-E', 'UTF8', '--no-sync'], {
    ...user,
    cwd: '/',
    stdio: 'ignore',
  })
  let server: ChildProcess | undefined
  let exited: Promise<unknown> = Promise.resolve()
  const addressAt = (host: string): string =>
    `postgres:///postgres?host=${encodeURIComponent(host)}&user=deputy`
  const address = addressAt(directory)

  const query = async (sql: string): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client({ connectionString: address })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  }
  const start = async (): Promise<void> => {
    server = spawn(
      join(bin, 'postgres'),
      ['-D', data, '-p', '5432', '-k', directory, '-c', 'listen_addresses=', '-c', 'fsync=off'],
      {
        ...user,
        cwd: '/',
        stdio: 'ignore',
      },
    )
    const started = server
    exited = new Promise(resolve => started.once('exit', resolve))
    await until(
      () =>
        query('select 1').then(
          () => true,
          () => false,
        ),
      'PostgreSQL answers',
      90_000,
    )
  }
  const stop = async (signal: 'SIGINT' | 'SIGQUIT'): Promise<void> => {
    server?.kill(signal)
    await exited
  }
  await start()
  return {
    url: (schema, host = directory) => `${addressAt(host)}&schema=${schema}`,
    socket: join(directory, SOCKET),
    query,
    start,
    stop,
    remove: async () => {
      await stop('SIGQUIT')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
