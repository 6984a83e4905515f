import { setTimeout as sleep } from 'node:timers/promises'
import type { Auth } from './auth.ts'
import type { Faults } from './faults.ts'
import type { State } from './state.ts'

export interface Task {
  readonly upid: string
  readonly node: string
  readonly type: string
  readonly id: string
  /** User or token id, as the UPID has it. */
  readonly owner: string
  readonly starttime: number
  endtime: number | undefined
  exitstatus: string | undefined
  readonly log: string[]
  readonly done: Promise<void>
  abort(): void
}

export interface TaskContext {
  readonly signal: AbortSignal
  log(line: string): void
  warn(line: string): void
  /** A step that takes time, can be told to fail, and ends early when the task is aborted. */
  step(name: string, ms: number): Promise<void>
}

/** Forks a worker: the caller gets the UPID at once, whatever becomes of the work. */
export const startTask = (
  { state, faults }: { state: State; faults: Faults },
  { node, type, id, auth }: { node: string; type: string; id: string; auth: Auth },
  work: (context: TaskContext) => Promise<void>,
): string => {
  const starttime = Math.floor(Date.now() / 1000)
  const owner = auth.token === undefined ? auth.user : `${auth.user}!${auth.token}`
  const upid = `UPID:${node}:${hex(state.pidCounter++)}:${hex(Math.floor(process.uptime() * 100))}:${hex(starttime)}:${type}:${id}:${owner}:`
  const log: string[] = []
  const controller = new AbortController()
  let warnings = 0
  const context: TaskContext = {
    signal: controller.signal,
    log: line => void log.push(line),
    warn: line => {
      warnings++
      log.push(`WARN: ${line}`)
    },
    step: async (name, ms) => {
      await sleep(ms * faults.slowness(type, name), undefined, { signal: controller.signal })
      const failure = faults.taskFailure(type, name, id)
      if (failure !== undefined) throw new Error(failure)
    },
  }
  const finish = (exitstatus: string) => {
    log.push(exitstatus === 'OK' ? 'TASK OK' : `TASK ERROR: ${exitstatus}`)
    task.exitstatus = exitstatus
    task.endtime = Math.floor(Date.now() / 1000)
  }
  const run = async () => {
    await sleep(state.timing.taskMs)
    try {
      await work(context)
      finish(warnings > 0 ? `WARNINGS: ${warnings}` : 'OK')
    } catch (error) {
      finish(controller.signal.aborted ? 'interrupted by signal' : (error as Error).message)
    }
  }
  const task: Task = {
    upid,
    node,
    type,
    id,
    owner,
    starttime,
    endtime: undefined,
    exitstatus: undefined,
    log,
    done: run(),
    abort: () => controller.abort(),
  }
  state.tasks.set(upid, task)
  return upid
}

const hex = (value: number): string => (value >>> 0).toString(16).toUpperCase().padStart(8, '0')
