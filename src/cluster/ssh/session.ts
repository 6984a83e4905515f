import { type ChildProcess, spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { createDeadline } from '../../jobs/deadline.ts'
import { type SshTarget, sshArguments } from './arguments.ts'
import { failureError, sshError } from './errors.ts'
import { type ConnectionPool, createPool, type PoolOptions } from './pool.ts'
import { createSpares, type OpenSession } from './spares.ts'

export interface SessionRequest {
  target: SshTarget
  /** A POSIX sh program. It is read from stdin: no word of it is on any command line. */
  script: string
  /** Follows the script on stdin; the script must then be one line. */
  input?: AsyncIterable<unknown>
  /** May return a promise: the stream waits for it. */
  onStdout?: (chunk: Buffer) => void | Promise<void>
  /** The connection stands; from here on the node may have got the script. */
  onOpen?: () => void
  /** False: neither take the session that waits for the next command nor open one. */
  spare?: boolean
  signal: AbortSignal
  timeoutMs?: number
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
  close(): void
}

export interface SshOptions extends PoolOptions {
  /** How long a shell waits for the next command; 0 for none. */
  spareMs?: number
}

const SPARE_OPEN_MS = 10_000
const MAX_STDOUT = 8 * 1024 * 1024
const MAX_STDERR = 16_384
/** Constant, and plain enough for every login shell there is. */
const READ_SCRIPT = 'exec sh'
const READ_LINE = `exec sh -c 'IFS= read -r s; eval "$s"'`

export const createSsh = (options: SshOptions): Ssh => {
  const pool = createPool(options)
  const spares = createSpares(options.spareMs ?? 30_000)
  const open = (target: SshTarget, remote: string, signal: AbortSignal): Promise<OpenSession> =>
    openSession(pool, options, { target, remote, signal })
  let closed = false

  /** A shell that waits on the node takes the opening of a session out of the next command's way. */
  const prepare = (target: SshTarget): void => {
    if (closed || options.spareMs === 0 || spares.has(target)) return
    const deadline = createDeadline([], SPARE_OPEN_MS)
    open(target, READ_SCRIPT, deadline.signal)
      .then(
        session => (closed ? session.discard() : spares.put(target, session)),
        () => undefined,
      )
      .finally(deadline.clear)
  }

  const run = async (request: SessionRequest): Promise<SessionResult> => {
    const { target } = request
    const deadline = createDeadline([request.signal], request.timeoutMs)
    const { signal } = deadline
    try {
      const session =
        (request.input || request.spare === false ? undefined : spares.take(target)) ??
        (await open(target, request.input ? READ_LINE : READ_SCRIPT, signal))
      const started = performance.now()
      request.onOpen?.()
      try {
        const result = await collect(session.child, request, signal)
        if (result.code === 255 && result.stdout.length === 0) {
          throw sshError(target, result.stderr, options.settings.knownHosts)
        }
        return { ...result, ms: performance.now() - started, connectMs: session.connectMs }
      } finally {
        session.release()
        if (request.spare !== false) prepare(target)
      }
    } catch (error) {
      throw deadline.expired ? failureError(target, 'timed-out') : error
    } finally {
      deadline.clear()
    }
  }

  return {
    run,
    reset: id => {
      spares.drop(id)
      pool.reset(id)
    },
    close: () => {
      closed = true
      spares.drop()
      pool.close()
    },
  }
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
  child.once('error', lease.release)
  return {
    child,
    connectMs: lease.connectMs,
    release: lease.release,
    discard: () => {
      child.kill('SIGKILL')
      lease.release()
    },
  }
}

const collect = (
  child: ChildProcess,
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
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    child.stdout!.on('data', (chunk: Buffer) => {
      const busy = request.onStdout?.(chunk)
      if (busy) {
        child.stdout!.pause()
        busy.then(
          () => child.stdout!.resume(),
          () => child.stdout!.resume(),
        )
      }
      if (size < (request.onStdout ? 1 : MAX_STDOUT)) chunks.push(chunk)
      size += chunk.length
    })
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR)
    })
    child.stdin!.on('error', () => undefined)
    child.on('error', error => {
      signal.removeEventListener('abort', onAbort)
      reject(error)
    })
    child.on('close', code => {
      signal.removeEventListener('abort', onAbort)
      resolve({ code: code ?? 255, stdout: Buffer.concat(chunks), stderr })
    })
    if (!request.input) {
      child.stdin!.end(request.script)
      return
    }
    child.stdin!.write(`${request.script}\n`)
    pipeline(request.input, child.stdin!).catch(() => undefined)
  })
