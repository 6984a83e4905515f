import type { Client } from '../client/daemon-client.ts'
import type { Home } from '../config/home.ts'
import { resolveHome } from '../config/home.ts'
import { VERSION } from '../version.ts'
import { type Colors, chooseColors } from './terminal/colors.ts'
import { type Column, table } from './terminal/table.ts'
import { createWriter, type Writer } from './terminal/writer.ts'

/** What every command gets. */
export interface Context {
  readonly env: NodeJS.ProcessEnv
  readonly home: Home
  readonly out: Writer
  readonly err: Writer
  /** For stdout; `errColors` for stderr: one may be a terminal and the other a pipe. */
  readonly colors: Colors
  readonly errColors: Colors
  /** Connects to the daemon and starts it when none runs. */
  client(): Promise<Client>
  /** Connects without starting a daemon. */
  plainClient(): Promise<Client>
  /** Writes to stdout; resolves with exit status 0. */
  print(text: string): Promise<number>
  printJson(value: unknown): Promise<number>
  printTable<T>(rows: readonly T[], columns: readonly Column<T>[]): Promise<number>
  close(): void
}

export const createContext = (options: { env: NodeJS.ProcessEnv; argv: readonly string[] }): Context => {
  const { env } = options
  const end = options.argv.indexOf('--')
  const off = options.argv.slice(0, end === -1 ? undefined : end).includes('--no-color')
  const out = createWriter(process.stdout)
  const err = createWriter(process.stderr)
  const colors = chooseColors({ env, isTTY: out.isTTY, off })
  const home = resolveHome(env)
  const clients: Client[] = []

  const connected = async (revive: boolean): Promise<Client> => {
    const { connect } = await import('../client/daemon-client.ts')
    const { ensureDaemon } = await import('../client/ensure-daemon.ts')
    const ensure = (signal?: AbortSignal) =>
      ensureDaemon(home, { version: VERSION, env, ...(signal && { signal }) })
    if (revive) await ensure()
    const client = connect(home, { origin: 'cli', version: VERSION, ...(revive && { revive: ensure }) })
    clients.push(client)
    return client
  }

  const print = async (text: string): Promise<number> => {
    await out.write(text)
    return 0
  }

  return {
    env,
    home,
    out,
    err,
    colors,
    errColors: chooseColors({ env, isTTY: err.isTTY, off }),
    client: () => connected(true),
    plainClient: () => connected(false),
    print,
    printJson: value => print(`${JSON.stringify(value, null, 2)}\n`),
    printTable: (rows, columns) => print(table(rows, columns, { width: out.columns, heading: colors.dim })),
    close: () => {
      for (const client of clients) client.close()
    },
  }
}
