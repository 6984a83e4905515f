import { pipeline } from 'node:stream/promises'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import type { GuestLink } from './guest-link.ts'

export interface GuestCommand {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Sent to stdin, which is then closed. */
  readonly input: string | AsyncIterable<unknown>
  onOpen?(): void
  /** May return a promise to pause the stream, or `enough` to end without waiting for the exit. */
  onStdout?(chunk: Buffer): undefined | 'enough' | Promise<void>
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

/** Where the runner keeps its records: a tmpfs. */
export const RUNNER_HOME = '/run/deputy'
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const MAX_STDERR = 16_384

/** Runs a program in a VM. Rejects for failures of the connection, never of the program. */
export const runInGuest = async (
  link: GuestLink,
  command: GuestCommand,
): Promise<{ code: number; stderr: string }> => {
  const deadline = createDeadline([command.signal], command.timeoutMs)
  deadline.signal.throwIfAborted()
  const env = { PATH: SYSTEM_PATH, HOME: RUNNER_HOME, PWD: '/', ...command.env }
  const program = link.run({ argv: command.argv, env })
  let stderr = ''
  program.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-MAX_STDERR)
  })
  const onAbort = (): void => program.drop()
  deadline.signal.addEventListener('abort', onAbort, { once: true })
  try {
    command.onOpen?.()
    const sent = send(program.stdin, command.input)
    const enough = await readStdout(program.stdout, command)
    if (enough) return { code: 0, stderr }
    const code = await program.exit
    await sent
    if (code !== null) return { code, stderr }
    if (deadline.expired) throw new AppError('timeout', 'The VM did not answer in time.')
    deadline.signal.throwIfAborted()
    throw new AppError('unavailable', 'The connection to the VM was cut.')
  } finally {
    deadline.signal.removeEventListener('abort', onAbort)
    deadline.clear()
    program.drop()
  }
}

/** Resolves with whether the reader has seen enough, or when the stream has ended, in whatever way. */
const readStdout = async (
  stdout: AsyncIterable<Buffer>,
  { onStdout }: Pick<GuestCommand, 'onStdout'>,
): Promise<boolean> => {
  try {
    for await (const chunk of stdout) {
      const busy = onStdout?.(chunk)
      if (busy === 'enough') return true
      await busy
    }
  } catch {
    // The exit status tells that the connection was lost.
  }
  return false
}

const send = async (stdin: NodeJS.WritableStream, input: GuestCommand['input']): Promise<void> => {
  if (typeof input === 'string') return void stdin.end(input)
  await pipeline(input, stdin).catch((error: NodeJS.ErrnoException) => {
    // A program that ends before it has read everything has its reason, which its exit status tells.
    if (!CLOSED.has(error.code ?? '')) throw error
  })
}

const CLOSED = new Set(['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'])
