import { randomBytes } from 'node:crypto'
import { AppError, toAppError } from '../jobs/errors.ts'
import type { Channel, Exchanged } from './channel.ts'
import { createFrameReader, parseAnswer, versionProblem } from './codec.ts'
import { type Answer, OLDEST, VERSION } from './frames.ts'
import { runnerScript } from './program.ts'

export interface ShellSession {
  /** Runs a script in `sh` on the machine. Rejects with an error of the connection, never of the script. */
  run(session: {
    script: string
    onOpen(bootId: string | undefined): void
    /** `enough`: resolve without waiting for the end of the session. */
    onStdout(chunk: Buffer): undefined | 'enough' | Promise<void>
    signal: AbortSignal
    timeoutMs?: number
  }): Promise<{ code: number; stderr: string }>
  /** The error for a session that ended before its answers were complete. */
  lost(stderr: string): AppError
  /** Whether an error of the connection means that nothing was sent. */
  isUnsent(error: AppError): boolean
  /** Whether an error is one of the connection. */
  isConnectionError(error: unknown): error is AppError
}

/** A channel to the POSIX runner, which travels with its requests: over ssh, or whatever else runs a shell. */
export const shellChannel = (owner: string, session: ShellSession): Channel => ({
  exchange: async (requests, { onAnswer, onSent, ready, signal, timeoutMs }): Promise<Exchanged> => {
    // Random, so that no output can pretend to be an answer.
    const mark = `deputy-${randomBytes(9).toString('hex')}`
    let sent = false
    let ended = false
    let takesRest = false
    let failure: AppError | undefined

    const onFrame = (answer: Answer, data: Buffer): void => {
      if (answer.kind === 'hello') {
        const problem = versionProblem(answer)
        if (problem !== undefined) throw new AppError('unsupported', problem)
      } else if (answer.kind === 'failed')
        throw new AppError('unsupported', `The runner refused: ${answer.reason}.`)
      else if (answer.kind === 'end') ended = true
      else {
        takesRest ||= answer.kind === 'files' || answer.kind === 'tar'
        onAnswer(answer, data)
      }
    }
    const read = createFrameReader({ parse: parseAnswer, mark, onFrame })
    const hello = { kind: 'hello', version: VERSION, oldest: OLDEST, mark, owner } as const
    try {
      const { code, stderr } = await session.run({
        script: runnerScript([hello, ...requests]),
        signal,
        ...(timeoutMs !== undefined && { timeoutMs }),
        onOpen: bootId => {
          sent = true
          onSent?.(bootId)
        },
        onStdout: chunk => {
          try {
            read(chunk)
          } catch (error) {
            failure = toAppError(error)
          }
          return ended || failure ? 'enough' : ready?.()
        },
      })
      const isComplete = ended || (takesRest && code === 0)
      // A runner that refuses has done nothing.
      if (failure?.code === 'unsupported') return { cut: failure, sent: false }
      return { cut: failure ?? (isComplete ? undefined : session.lost(stderr)), sent }
    } catch (error) {
      if (ended) return { cut: undefined, sent }
      if (!session.isConnectionError(error)) throw error
      return { cut: error, sent: sent && !session.isUnsent(error) }
    }
  },
})
