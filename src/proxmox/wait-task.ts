import { AppError } from '../jobs/errors.ts'
import type { Request } from './api-request.ts'
import { path } from './encode.ts'
import type { Clock } from './proxmox-clock.ts'
import { errorFromTask, type ProxmoxDetails } from './proxmox-errors.ts'
import { backoff } from './retry.ts'
import { parseUpid, type Upid } from './upid.ts'

export interface WaitOptions {
  readonly signal?: AbortSignal
  /** In milliseconds since the epoch. Default: no deadline. */
  readonly deadline?: number
}

export interface TaskResult {
  readonly upid: string
  /** `OK` or `WARNINGS: n`; any other status throws. */
  readonly exitStatus: string
  readonly warnings: boolean
  readonly log: readonly string[]
}

const LOG_TAIL = 20

/**
 * Polls a task until it ends. Temporary outages of the cluster do not end the wait; the deadline does.
 * Aborting the wait does not stop the task; use `cancelTask`.
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
    // Many tasks end within milliseconds and a user is waiting, so polling starts fast and backs off.
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

/** Undefined if the cluster is temporarily unavailable. */
const poll = async (request: Request, at: string, call: { signal?: AbortSignal }) => {
  try {
    return await request<{ status?: string; exitstatus?: string } | null>('GET', at, {}, call)
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable' && error.retryable) return undefined
    throw error
  }
}

/** Reads the whole log (`limit: 0`). By default Proxmox VE returns the first 50 lines, but errors are at the end. */
const readTail = async (request: Request, base: string): Promise<string[]> => {
  const lines = await request<{ t?: string }[] | null>('GET', `${base}/log`, { limit: 0 }).catch(() => [])
  return (lines ?? []).map(line => String(line.t ?? '')).slice(-LOG_TAIL)
}

const tooLong = (task: Upid): AppError =>
  new AppError('timeout', `The Proxmox VE task ${task.type} on ${task.node} did not finish in time.`, {
    hint: `It may still be running: pvesh get /nodes/${task.node}/tasks/${task.upid}/status`,
    details: { source: 'proxmox', kind: 'task_failed', upid: task.upid } satisfies ProxmoxDetails,
  })
