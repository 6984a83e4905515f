import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type ConnectionPool, createPool, type PoolOptions } from './connection-pool.ts'
import { type SshTarget, sshArguments } from './ssh-arguments.ts'
import { failureError, sshError } from './ssh-errors.ts'
import { type Program, type ProgramSpec, READ_PROGRAM, startProgram } from './start-program.ts'

interface SessionRequest {
  target: SshTarget
  /** A POSIX sh program. It is sent through stdin, so that no part of it appears in a process list. */
  script: string
  /** Sent to stdin after the script; the script must then be one line. */
  input?: AsyncIterable<unknown>
  /** May return a promise to pause the stream, or `enough` to end `run` without waiting for the exit of the script. */
  onStdout?: (chunk: Buffer) => undefined | 'enough' | Promise<void>
  /** Called with the node's boot id when the session is open. From then on the node may have received the script. */
  onOpen?: (bootId: string | undefined) => void
  signal: AbortSignal
  timeoutMs?: number
  /** Limit for the output without `onStdout`. More is an error, because a truncated answer must not be used. */
  maxStdout?: number
}

interface SessionResult {
  code: number
  stdout: Buffer
  stderr: string
  /** Duration of the session. */
  ms: number
  /** How long it took to open the shared connection. */
  connectMs: number
}

export interface Ssh {
  /** Runs a program with `sh` on the node. Throws for failures of ssh, never of the program. */
  run(request: SessionRequest): Promise<SessionResult>
  /** Starts a program that the caller talks to. Resolves when it reads its stdin. */
  open(request: ProgramRequest): Promise<Program>
  reset(id: string): void
  /** The boot id of the node at its last connection; undefined on macOS. */
  bootId(id: string): string | undefined
  close(): void
}

interface ProgramRequest extends ProgramSpec {
  target: SshTarget
}

interface OpenSession {
  readonly child: ChildProcessWithoutNullStreams
  readonly connectMs: number
  readonly bootId: string | undefined
}

/** How long a session may take to exit after `enough`. */
const LINGER_MS = 5_000
/** How long a program may take to start. */
const OPEN_MS = 60_000
const MAX_STDOUT = 8 * 1024 * 1024
const MAX_STDERR = 16_384
/** Constants, simple enough for any login shell. */
const READ_SCRIPT = 'exec sh'
const READ_LINE = `exec sh -c 'IFS= read -r s; eval "$s"'`

export const createSsh = (options: PoolOptions): Ssh => {
  const pool = createPool(options)

  const run = async (request: SessionRequest): Promise<SessionResult> => {
    const { target } = request
    const deadline = createDeadline([request.signal], request.timeoutMs)
    const { signal } = deadline
    try {
      const remote = request.input ? READ_LINE : READ_SCRIPT
      const session = await openSession(pool, options, { target, remote, signal })
      const started = performance.now()
      request.onOpen?.(session.bootId)
      const result = await collect(session.child, request, signal)
      if (result.code === 255 && result.stdout.length === 0) {
        throw sshError(target, result.stderr, options.settings.knownHosts)
      }
      return { ...result, ms: performance.now() - started, connectMs: session.connectMs }
    } catch (error) {
      throw deadline.expired ? failureError(target, 'timed-out') : error
    } finally {
      deadline.clear()
    }
  }

  const open = async ({ target, ...spec }: ProgramRequest): Promise<Program> => {
    const deadline = createDeadline([spec.signal], OPEN_MS)
    const { signal } = deadline
    try {
      const { child } = await openSession(pool, options, {
        ...{ target, remote: READ_PROGRAM, signal },
        hasTerminal: spec.terminal !== undefined,
      })
      return await startProgram(child, { ...spec, signal }, stderr =>
        sshError(target, stderr, options.settings.knownHosts),
      )
    } catch (error) {
      throw deadline.expired ? failureError(target, 'timed-out') : error
    } finally {
      deadline.clear()
    }
  }

  return { run, open, reset: pool.reset, bootId: pool.bootId, close: pool.close }
}

const openSession = async (
  pool: ConnectionPool,
  options: PoolOptions,
  request: { target: SshTarget; remote: string; hasTerminal?: boolean; signal: AbortSignal },
): Promise<OpenSession> => {
  const { target } = request
  const lease = await pool.acquire(target, request.signal)
  const args = [
    // The first value of an option counts.
    ...(request.hasTerminal ? ['-o', 'RequestTTY=force'] : []),
    ...sshArguments(target, options.settings),
    '-o',
    'ControlMaster=no',
    '-S',
    lease.controlPath,
    '--',
    target.host,
    request.remote,
  ]
  const child = spawn(options.ssh ?? 'ssh', args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: options.env ?? process.env,
  })
  child.stdin.on('error', () => undefined)
  child.once('error', lease.release)
  child.once('close', lease.release)
  return { child, connectMs: lease.connectMs, bootId: lease.bootId }
}

const collect = (
  child: ChildProcessWithoutNullStreams,
  request: SessionRequest,
  signal: AbortSignal,
): Promise<{ code: number; stdout: Buffer; stderr: string }> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let stderr = ''
    const onAbort = (): void => {
      child.kill('SIGKILL')
      reject(signal.reason)
    }
    const fail = (error: unknown): void => {
      signal.removeEventListener('abort', onAbort)
      reject(error)
    }
    const finish = (code: number): void => {
      signal.removeEventListener('abort', onAbort)
      resolve({ code, stdout: Buffer.concat(chunks), stderr })
    }
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    child.stdout.on('data', (chunk: Buffer) => {
      const busy = request.onStdout?.(chunk)
      if (!request.onStdout || size === 0) chunks.push(chunk)
      size += chunk.length
      if (!request.onStdout && size > (request.maxStdout ?? MAX_STDOUT)) {
        child.kill('SIGKILL')
        return fail(outputTooLarge(request.target, size))
      }
      if (busy === 'enough') {
        finish(0)
        detach(child)
      } else if (busy) {
        child.stdout.pause()
        busy.then(
          () => child.stdout.resume(),
          () => child.stdout.resume(),
        )
      }
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR)
    })
    child.on('error', fail)
    child.on('close', code => finish(code ?? 255))
    if (!request.input) {
      child.stdin.end(request.script)
      return
    }
    child.stdin.write(`${request.script}\n`)
    // The exit status of ssh tells why the input was not taken.
    pipeline(request.input, child.stdin).catch(() => undefined)
  })

const outputTooLarge = ({ id }: SshTarget, bytes: number): AppError =>
  new AppError('too_large', `Node ${id} sent more than ${Math.floor(bytes / 1048576)} MiB.`, {
    hint: 'Use a workspace with fewer files: .gitignore excludes files.',
  })

/** Lets the session exit on its own, and kills it after a while. It keeps its lease on the connection until then. */
const detach = (child: ChildProcessWithoutNullStreams): void => {
  child.unref()
  const timer = setTimeout(() => child.kill('SIGKILL'), LINGER_MS)
  timer.unref()
  child.once('close', () => clearTimeout(timer))
}
