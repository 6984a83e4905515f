import { spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { type SshSettings, type SshTarget, sshArguments } from './ssh-arguments.ts'
import { failureError, sshError } from './ssh-errors.ts'

export interface Master {
  readonly controlPath: string
  readonly alive: boolean
  /** From the start of ssh to the first output of the node. */
  readonly connectMs: number
  /** The boot id of the node, on Linux. It stays valid for the connection, which does not survive a reboot. */
  readonly bootId: string | undefined
  close(): void
  onExit(listener: () => void): void
}

const READY = /^deputy-ready ?([0-9a-f-]{36})?$/m
/** Wrapped in `sh -c`, because the login shell may not be a POSIX shell. */
const WAIT_COMMAND = `exec sh -c '{ read -r b </proc/sys/kernel/random/boot_id; } 2>/dev/null; echo "deputy-ready $b"; exec cat'`

/**
 * Opens a connection that other ssh processes share. Its own session is a `cat` on a pipe to this process: when this
 * process dies, the pipe closes and `cat` exits. The connection closes with its last session; until then, a request
 * that was already written may still be delivered.
 */
export const openMaster = (options: {
  ssh: string
  target: SshTarget
  settings: SshSettings
  controlPath: string
  env: NodeJS.ProcessEnv
  signal: AbortSignal
}): Promise<Master> => {
  const { target, settings, controlPath, signal } = options
  const started = performance.now()
  const args = [...sshArguments(target, settings), '-M', '-S', controlPath, '--', target.host, WAIT_COMMAND]
  const deadlineMs = ((settings.connectTimeoutSeconds ?? 5) + (settings.answerTimeoutSeconds ?? 5)) * 1000

  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const child = spawn(options.ssh, args, { stdio: ['pipe', 'pipe', 'pipe'], env: options.env })
    let stderr = ''
    let stdout = ''
    let alive = false
    const listeners: (() => void)[] = []
    const close = (): void => {
      child.stdin.destroy()
      child.kill('SIGTERM')
    }
    const fail = (error: unknown): void => {
      settle()
      close()
      reject(error)
    }
    const onAbort = (): void => fail(signal.reason)
    // ConnectTimeout covers TCP and the key exchange only; this timer also covers a node that hangs later.
    const timer = setTimeout(() => fail(failureError(target, 'timed-out')), deadlineMs)
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    child.stdin.on('error', () => undefined)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-8192)
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (alive) return
      stdout = (stdout + text).slice(-8192)
      // The login shell may print something before.
      const ready = READY.exec(stdout.slice(0, stdout.lastIndexOf('\n') + 1))
      if (!ready) return
      alive = true
      settle()
      const connectMs = performance.now() - started
      unreference(child)
      resolve({
        controlPath,
        get alive() {
          return alive
        },
        connectMs,
        bootId: ready[1],
        close,
        onExit: listener => listeners.push(listener),
      })
    })
    child.on('error', error => fail(error))
    child.on('close', () => {
      const wasAlive = alive
      alive = false
      // A socket that is left is replaced by the next connection.
      void rm(controlPath, { force: true }).catch(() => undefined)
      if (!wasAlive) fail(sshError(target, stderr, settings.knownHosts))
      for (const listener of listeners) listener()
    })
  })
}

/** An idle connection must not keep the process alive. */
const unreference = (child: ReturnType<typeof spawn>): void => {
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
}
