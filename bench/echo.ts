import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isListening } from '../src/client/daemon-info.ts'

export interface Echo {
  readonly socketPath: string
  memory(): number
  stop(): Promise<void>
}

/** A bare HTTP server in a process of its own, on a Unix socket like the daemon's. */
export const startEcho = async (): Promise<Echo> => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-echo-'))
  const socketPath = join(directory, 'echo.sock')
  const program = fileURLToPath(new URL('./echo-server.js', import.meta.url))
  const child = spawn(process.execPath, [program, socketPath], { stdio: 'inherit' })
  const ended = new Promise(resolve => child.once('exit', resolve))
  for (let tries = 0; !(await isListening(socketPath)); tries++) {
    if (tries > 200) throw new Error('the echo server did not start')
    await sleep(25)
  }
  return {
    socketPath,
    memory: () => residentBytes(child.pid),
    stop: async () => {
      child.kill()
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const residentBytes = (pid: number | undefined): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
