import { AppError } from '../../jobs/errors.ts'
import type { Answer } from '../../runner/frames.ts'
import type { RunResult } from '../../runner/run-result.ts'
import { readResult, readStarted } from './job-state-files.ts'

/** The answer that ends a run. */
export type RunEndAnswer = Extract<Answer, { kind: 'exit' | 'lost' | 'refused' }>

const KILLED = 128 + 9

export const endAnswer = (run: string, result: RunResult): RunEndAnswer => {
  if (result.kind === 'lost') return { kind: 'lost', run, reason: result.error.message, error: result.error }
  if (result.kind === 'not-started')
    return { kind: 'refused', run, fault: true, reason: result.error.message, error: result.error }
  const { exit } = result
  return {
    kind: 'exit',
    run,
    code: exit.code ?? KILLED,
    how: exit.stopped === null ? 'exit' : exit.stopped === 'timeout' ? 'timeout' : 'stop',
    startedAt: Math.floor(exit.startedAt / 1000),
    endedAt: Math.floor(exit.endedAt / 1000),
    result: exit,
  }
}

/** The run did not start here: another shim may start it. */
export const refusal = (run: string, thrown: AppError): RunEndAnswer => {
  const error = thrown.toBody()
  return { kind: 'refused', run, fault: false, reason: error.message, error }
}

/**
 * Determines from its files how a run ended that no shim holds. Without a result, the start marker decides whether the
 * run is lost or was never started. `problem`: why a shim that may hold the run cannot be asked.
 */
export const endFromFiles = async (
  run: string,
  dir: string,
  problem: string | undefined,
): Promise<RunEndAnswer> => {
  const result = await readResult(dir)
  if (result !== undefined) return endAnswer(run, result)
  if ((await readStarted(dir)) === undefined) return refusal(run, neverStarted())
  return endAnswer(run, { kind: 'lost', error: (problem === undefined ? died() : unasked(problem)).toBody() })
}

const neverStarted = (): AppError =>
  new AppError('unavailable', 'The process that held the job ended and left no record of its start.')

const died = (): AppError =>
  new AppError('internal', 'The process that held the job ended, and the job with it.', {
    hint: 'It was killed from outside, or the computer was restarted. Submit the job again.',
  })

const unasked = (problem: string): AppError =>
  new AppError('unsupported', `The process that holds the job cannot be asked. ${problem}`, {
    hint: 'The command may still run: it ends with its timeout. Submit the job again.',
  })
