import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type SshTarget, sshArguments } from './arguments.ts'
import { failureError, sshError } from './errors.ts'
import { type ConnectionPool, createPool, type PoolOptions } from './pool.ts'

export interface SessionRequest {
  target: SshTarget
  /** A POSIX sh program. It is read from stdin: no word of it is on any command line. */
  script: string
  /** Follows the script on stdin; the script must then be one line. */
  input?: AsyncIterable<unknown>
  /** May return a promise: the stream waits for it. `enough`: all that matters is said, nobody waits for the end. */
  onStdout?: (chunk: Buffer) => undefined | 'enough' | Promise<void>
  /** The connection stands; from here on the node, in this life of it, may have got the script. */
  onOpen?: (boot: string | undefined) => void
  signal: AbortSignal
  timeoutMs?: number
  /** More than this without `onStdout` is an error: half an answer must not be taken for one. */
  maxStdout?: number
}

export interface SessionResult {
  code: number
  stdout: Buffer
  stderr: string
  /** Of this session, and of the connection it shares. */
  ms: number
  connectMs: number
}

export interface Ssh {
  /** Runs a program in `sh` on the node. An error is of ssh, never of the program. */
  run(request: SessionRequest): Promise<SessionResult>
  reset(id: string): void
  /** Which life of a node was seen last, where it tells. */
  boot(id: string): string | undefined
  close(): void
}

interface OpenSession {
  readonly child: ChildProcessWithoutNullStreams
  readonly connectMs: number
  readonly boot: string | undefined
}

/** Between having said enough and ending. */
const LINGER_MS = 5_000
const MAX_STDOUT = 8 * 1024 * 1024
const MAX_STDERR = 16_384
/** Constant, and plain enough for every login shell there is. */
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
      request.onOpen?.(session.boot)
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

  return { run, reset: pool.reset, boot: pool.boot, close: pool.close }
}

const openSession = async (
  pool: ConnectionPool,
  options: PoolOptions,
  request: { target: SshTarget; remote: string; signal: AbortSignal },
): Promise<OpenSession> => {
  const { target } = request
  const lease = await pool.acquire(target, request.signal)
  const args = [
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
  return { child, connectMs: lease.connectMs, boot: lease.boot }
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
        return fail(tooMuch(request.target, size))
      }
      if (busy === 'enough') {
        finish(0)
        leaveAlone(child)
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
    pipeline(request.input, child.stdin).catch(() => undefined)
  })

const tooMuch = ({ id }: SshTarget, bytes: number): AppError =>
  new AppError('too_large', `Node ${id} answered with more than ${Math.floor(bytes / 1048576)} MiB.`, {
    hint: 'A workspace with fewer files is copied and listed; .gitignore keeps files out of it.',
  })

/** It ends by itself in a moment, and keeps its place on the connection until then. */
const leaveAlone = (child: ChildProcessWithoutNullStreams): void => {
  child.unref()
  const timer = setTimeout(() => child.kill('SIGKILL'), LINGER_MS)
  timer.unref()
  child.once('close', () => clearTimeout(timer))
}
