import { AppError } from '../jobs/errors.ts'
import type { Request } from './api-request.ts'
import type { Clock } from './clock.ts'
import { path } from './encode.ts'
import { errorFromTask, type ProxmoxDetails } from './proxmox-errors.ts'
import { backoff } from './retry.ts'
import { parseUpid, type Upid } from './upid.ts'

export interface WaitOptions {
  readonly signal?: AbortSignal
  /** In milliseconds since the epoch; without it the wait has no end of its own. */
  readonly deadline?: number
}

export interface TaskResult {
  readonly upid: string
  /** `OK` or `WARNINGS: n`; anything else is thrown. */
  readonly exitStatus: string
  readonly warnings: boolean
  readonly log: readonly string[]
}

const LOG_TAIL = 20

/**
 * Polls a task to its end. A cluster that is away for a while does not end the wait, the deadline does.
 * Giving up does not stop the task: `cancelTask` does.
 */
export const waitTask = async (
  { request, clock }: { request: Request; clock: Clock },
  text: string,
  { signal, deadline = Number.POSITIVE_INFINITY }: WaitOptions = {},
): Promise<TaskResult> => {
  const task = parseUpid(text)
  const base = path`/nodes/${task.node}/tasks/${task.upid}`
  const call = signal ? { signal } : {}
  for (let attempt = 0; ; attempt++) {
    const status = await poll(request, `${base}/status`, call)
    if (status?.status === 'stopped')
      return settle(request, task, base, String(status.exitstatus ?? 'unexpected status'))
    // Many tasks are over in a moment, and what waits for them is a person; one that lasts is asked less and less.
    const pause = backoff(Math.min(attempt, 10), { first: 2, most: 1500 })
    if (clock.now() + pause > deadline) throw tooLong(task)
    await clock.sleep(pause, signal)
  }
}

const settle = async (
  request: Request,
  task: Upid,
  base: string,
  exitStatus: string,
): Promise<TaskResult> => {
  const warnings = exitStatus.startsWith('WARNINGS')
  if (exitStatus === 'OK') return { upid: task.upid, exitStatus, warnings, log: [] }
  const log = await readTail(request, base)
  if (warnings) return { upid: task.upid, exitStatus, warnings, log }
  throw errorFromTask(task.upid, task.type, exitStatus, log)
}

/** Undefined when the answer could not be had right now. */
const poll = async (request: Request, at: string, call: { signal?: AbortSignal }) => {
  try {
    return await request<{ status?: string; exitstatus?: string } | null>('GET', at, {}, call)
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable' && error.retryable) return undefined
    throw error
  }
}

/** The whole log: without a limit of 0 Proxmox VE returns the first 50 lines, which are not the ones that tell. */
const readTail = async (request: Request, base: string): Promise<string[]> => {
  const lines = await request<{ t?: string }[] | null>('GET', `${base}/log`, { limit: 0 }).catch(() => [])
  return (lines ?? []).map(line => String(line.t ?? '')).slice(-LOG_TAIL)
}

const tooLong = (task: Upid): AppError =>
  new AppError('timeout', `The Proxmox VE task ${task.type} on ${task.node} did not end in time.`, {
    hint: `It may still be running: pvesh get /nodes/${task.node}/tasks/${task.upid}/status`,
    details: { source: 'proxmox', kind: 'task_failed', upid: task.upid } satisfies ProxmoxDetails,
  })
