import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'
import { type Client, connect } from '../../src/client/daemon-client.ts'
import { isListening } from '../../src/client/daemon-info.ts'
import { type Home, resolveHome } from '../../src/config/home.ts'
import { until } from './engine.ts'
import { removeDirectory } from './remove-directory.ts'

export { removeDirectory }

export const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface TestDaemon {
  readonly home: Home
  readonly directory: string
  readonly client: Client
  readonly process: ChildProcess
  readonly pid: number
  log(): string
  /** Resolves with what ended it. */
  ended(): Promise<number | NodeJS.Signals>
  kill(signal?: NodeJS.Signals): Promise<void>
}

export interface DaemonSettings {
  readonly directory?: string
  readonly env?: Readonly<Record<string, string>>
  /** A file for its log instead of this process. */
  readonly stderr?: number
  /** False: do not wait for the socket (the daemon may die first). */
  readonly ready?: boolean
  /** A program that runs the daemon, with its arguments. */
  readonly under?: readonly string[]
}

export const newHome = (): string => mkdtempSync(join(tmpdir(), 'deputy-test-'))

/** The product's own daemon in a process of its own, in a home of its own. */
export const startDaemon = async ({
  directory = newHome(),
  env = {},
  stderr,
  ready = true,
  under = [],
}: DaemonSettings = {}): Promise<TestDaemon> => {
  const home = resolveHome({ DEPUTY_HOME: directory })
  let log = ''
  const [program, ...args] = [...under, process.execPath, CLI, 'daemon', 'run']
  const child = spawn(program!, args, {
    env: { PATH: process.env.PATH, HOME: directory, DEPUTY_HOME: directory, DEPUTY_HTTP_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', stderr ?? 'pipe'],
  })
  // Never -1: a signal to it would reach every process.
  if (child.pid === undefined) throw new Error(`cannot start ${program}`)
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', chunk => {
      log += chunk
    })
  const end = new Promise<number | NodeJS.Signals>(resolve => {
    child.once('exit', (code, signal) => resolve(signal ?? code ?? -1))
  })
  const client = connect(home, { origin: 'test' })
  const daemon: TestDaemon = {
    home,
    directory,
    client,
    process: child,
    pid: child.pid,
    log: () => log,
    ended: () => end,
    kill: async (signal = 'SIGKILL') => {
      child.kill(signal)
      await end
      client.close()
    },
  }
  if (ready)
    await until(
      async () => {
        if (child.exitCode !== null) throw new Error(`the daemon ended: ${log}`)
        return isListening(home.socket)
      },
      'the daemon listens',
      120_000,
    )
  return daemon
}

/** Starts daemons for the tests of one file; each is killed and its home removed after its test. */
export const useDaemons = (): typeof startDaemon => {
  const daemons: TestDaemon[] = []
  afterEach(async () => {
    for (const daemon of daemons.splice(0)) {
      await daemon.kill()
      removeDirectory(daemon.directory)
    }
  })
  return async settings => {
    const daemon = await startDaemon(settings)
    daemons.push(daemon)
    return daemon
  }
}
