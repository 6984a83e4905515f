import { setTimeout as sleep } from 'node:timers/promises'
import { createDeadline } from '../jobs/deadline.ts'
import { toAppError } from '../jobs/errors.ts'
import type { AttachRequest, Exit } from '../ports.ts'
import { adoptFiles, adoptNothing } from './adopt-files.ts'
import { type Collected, createCollection, leavesFiles } from './collect.ts'
import type { RunOptions } from './run.ts'
import type { RunExit } from './run-result.ts'
import { channelSource } from './workspace-source.ts'

export const COLLECT_MS = 120_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000

/** Stores the files that the runner has collected. */
export const adoptWithRetries = (
  { blobs, run }: Pick<RunOptions, 'blobs' | 'run'>,
  result: RunExit,
  directory: string,
): Promise<Exit> =>
  retryCollecting(
    run,
    () => adoptFiles(result, { blobs, directory, jobId: run.job.id }),
    problem => adoptNothing(result, problem),
  )

/** Brings the files back from the machine. */
export const collectWithRetries = async (
  { host, run, blobs, keep }: Pick<RunOptions, 'host' | 'run' | 'blobs' | 'keep'>,
  startedAt: number,
): Promise<Collected> => {
  const { manifest, machine } = run
  const collection = createCollection({
    blobs,
    keep,
    manifest,
    jobId: run.job.id,
    startedAt: () => startedAt,
  })
  if (!leavesFiles(manifest)) return collection.result()
  return retryCollecting(
    run,
    async signal => {
      const channel = await host.connect(signal)
      await collection.fetch(channelSource({ channel, workspace: machine.id, signal }))
      return collection.result()
    },
    collection.result,
  )
}

/** The disk of this computer: the files stay where they are until there is room. */
const isDiskFull = (error: unknown): boolean =>
  error instanceof Error &&
  (('code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) || isDiskFull(error.cause))

/** Retries through lost connections and while the disk is full. `giveUp` gets the reason of the last failure. */
const retryCollecting = async <T>(
  run: AttachRequest,
  attempt: (signal: AbortSignal) => Promise<T>,
  giveUp: (problem: string) => T,
): Promise<T> => {
  const deadline = createDeadline([run.detach], COLLECT_MS)
  const { signal } = deadline
  let pause = FIRST_PAUSE_MS
  try {
    for (;;) {
      try {
        return await attempt(signal)
      } catch (error) {
        // This daemon is stopping; the next one collects, because the machine has recorded the end of the command.
        if (run.detach.aborted) throw error
        const { message, retryable } = toAppError(error)
        if (signal.aborted || !(retryable || isDiskFull(error))) return giveUp(message)
        // Ignore the abort here: the next attempt fails with it.
        await sleep(pause, undefined, { signal }).catch(() => undefined)
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
      }
    }
  } finally {
    deadline.clear()
  }
}
