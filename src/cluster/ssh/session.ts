import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type SshTarget, sshArguments } from './arguments.ts'
import { failureError, sshError } from './errors.ts'
import { type ConnectionPool, createPool, type PoolOptions } from './pool.ts'
import { createStandbys, type Standby } from './standby.ts'

export interface SessionRequest {
  target: SshTarget
  /**
   * A POSIX sh program. It is read from stdin: no word of it is on any command line. As a function it may be given
   * to a session that was opened ahead, and is asked for what that one takes.
   */
  script: string | ((greeting: string | undefined) => string)
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

export interface SshOptions extends PoolOptions {
  /** What a session opened ahead runs before it has anything to do; it says a line when it is ready. */
  standby?: { script: string; greeting: RegExp; keepMs?: number }
}

export interface OpenSession {
  readonly child: ChildProcessWithoutNullStreams
  readonly connectMs: number
  readonly boot: string | undefined
  discard(): void
}

/** A second one for whoever comes while the first is being replaced. */
const STANDBYS = 2
const STANDBY_OPEN_MS = 10_000
const STANDBY_KEEP_MS = 30_000
/** Opening a session ahead takes processor time that what has just ended can use better. */
const STANDBY_PAUSE_MS = 5
/** Between having said enough and ending. */
const LINGER_MS = 5_000
const MAX_STDOUT = 8 * 1024 * 1024
const MAX_STDERR = 16_384
/** Constant, and plain enough for every login shell there is. */
const READ_SCRIPT = 'exec sh'
const READ_LINE = `exec sh -c 'IFS= read -r s; eval "$s"'`

export const createSsh = (options: SshOptions): Ssh => {
  const pool = createPool(options)
  const standbys = createStandbys(options.standby?.keepMs ?? STANDBY_KEEP_MS)
  const opening = new Set<string>()
  const open = (target: SshTarget, remote: string, signal: AbortSignal): Promise<OpenSession> =>
    openSession(pool, options, { target, remote, signal })
  let closed = false

  /** Takes opening a session, and starting what serves commands, out of the next command's way. */
  const prepare = async (target: SshTarget): Promise<void> => {
    const { standby } = options
    const name = JSON.stringify(target)
    if (standby === undefined || opening.has(name)) return
    opening.add(name)
    const deadline = createDeadline([], STANDBY_OPEN_MS)
    try {
      await sleep(STANDBY_PAUSE_MS, undefined, { ref: false })
      while (!closed && standbys.count(target) < STANDBYS) {
        const session = await open(target, READ_SCRIPT, deadline.signal)
        session.child.stdin.write(standby.script)
        const greeting = await greetingOf(session, standby.greeting, deadline.signal)
        if (closed || greeting === undefined) return session.discard()
        standbys.put(target, { session, greeting })
      }
    } catch {
      // The next command opens its own, and tells what is wrong.
    } finally {
      opening.delete(name)
      deadline.clear()
    }
  }

  const run = async (request: SessionRequest): Promise<SessionResult> => {
    const { target, script } = request
    const deadline = createDeadline([request.signal], request.timeoutMs)
    const { signal } = deadline
    const flexible = typeof script === 'function'
    try {
      const ready: Standby | undefined = flexible ? standbys.take(target) : undefined
      const session = ready?.session ?? (await open(target, request.input ? READ_LINE : READ_SCRIPT, signal))
      const started = performance.now()
      request.onOpen?.(session.boot)
      const text = flexible ? script(ready?.greeting) : script
      const result = await collect(session.child, text, request, signal)
      if (result.code === 255 && result.stdout.length === 0) {
        throw sshError(target, result.stderr, options.settings.knownHosts)
      }
      return { ...result, ms: performance.now() - started, connectMs: session.connectMs }
    } catch (error) {
      throw deadline.expired ? failureError(target, 'timed-out') : error
    } finally {
      deadline.clear()
      if (flexible) void prepare(target)
    }
  }

  return {
    run,
    reset: id => {
      standbys.drop(id)
      pool.reset(id)
    },
    boot: pool.boot,
    close: () => {
      closed = true
      standbys.drop()
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
  return {
    child,
    connectMs: lease.connectMs,
    boot: lease.boot,
    discard: () => void child.kill('SIGKILL'),
  }
}

/** The first line that greets; what a login shell prints by itself comes before it. */
const greetingOf = (
  { child }: OpenSession,
  pattern: RegExp,
  signal: AbortSignal,
): Promise<string | undefined> =>
  new Promise(resolve => {
    let text = ''
    const settle = (greeting: string | undefined): void => {
      child.stdout.off('data', onData).pause()
      child.off('close', onEnd)
      signal.removeEventListener('abort', onEnd)
      resolve(greeting)
    }
    const onEnd = (): void => settle(undefined)
    const onData = (chunk: Buffer): void => {
      text = (text + chunk.toString('latin1')).slice(-8192)
      const greeting = pattern.exec(text)?.[1]
      if (greeting !== undefined) settle(greeting)
    }
    child.stdout.on('data', onData)
    child.once('close', onEnd)
    child.once('error', onEnd)
    signal.addEventListener('abort', onEnd, { once: true })
  })

const collect = (
  child: ChildProcessWithoutNullStreams,
  script: string,
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
    // One that was opened ahead has been stopped after its greeting.
    child.stdout.resume()
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR)
    })
    child.on('error', fail)
    child.on('close', code => finish(code ?? 255))
    if (!request.input) {
      child.stdin.end(script)
      return
    }
    child.stdin.write(`${script}\n`)
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
