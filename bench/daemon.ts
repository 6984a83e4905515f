import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Client, connect } from '../src/client/daemon-client.ts'
import { isListening } from '../src/client/daemon-info.ts'
import { DAEMON_FLAGS } from '../src/client/spawn-daemon.ts'
import { type Home, resolveHome } from '../src/config/home.ts'

const CLI = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))

export interface BenchDaemon {
  readonly client: Client
  /** DEPUTY_HOME. */
  readonly directory: string
  readonly home: Home
  readonly pid: number
  /** Resident memory in bytes. */
  memory(): number
  stop(): Promise<void>
}

/** A daemon of the product in a home of its own. */
export const startDaemon = async (
  env: Record<string, string> = {},
  prepare: (home: Home) => Promise<void> = async () => {},
): Promise<BenchDaemon> => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-bench-'))
  const home = resolveHome({ DEPUTY_HOME: directory })
  await prepare(home)
  const child = spawn(process.execPath, [...DAEMON_FLAGS, CLI, 'daemon', 'run'], {
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      DEPUTY_HOME: directory,
      DEPUTY_HTTP_PORT: '0',
      DEPUTY_LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const ended = new Promise(resolve => child.once('exit', resolve))
  for (let tries = 0; !(await isListening(home.socket)); tries++) {
    if (tries > 600 || child.exitCode !== null) throw new Error('the daemon did not start')
    await sleep(50)
  }
  const client = connect(home, { origin: 'bench' })
  return {
    client,
    directory,
    home,
    pid: child.pid ?? -1,
    memory: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) * 1024,
    stop: async () => {
      client.close()
      child.kill('SIGTERM')
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
