import { createDeadline } from '../jobs/deadline.ts'
import type { Readiness, Runtime } from '../ports.ts'

export interface Readinesses {
  /** The last known answer, never waited for. */
  known(name: string): Readiness | undefined
  /** Asks all runtimes now, side by side. */
  checkAll(signal: AbortSignal): Promise<Readiness[]>
}

const LONGEST_MS = 30_000

export const createReadinesses = (runtimes: ReadonlyMap<string, Runtime>): Readinesses => {
  const known = new Map<string, Readiness>()
  const check = async (runtime: Runtime, signal: AbortSignal): Promise<Readiness> => {
    const deadline = createDeadline([signal], LONGEST_MS)
    const readiness = await runtime
      .check(deadline.signal)
      .catch((error: unknown) => unanswered(runtime.name, error))
      .finally(deadline.clear)
    known.set(runtime.name, readiness)
    return readiness
  }
  return {
    known: name => known.get(name),
    checkAll: signal =>
      Promise.all([...runtimes.values()].filter(isAwake).map(runtime => check(runtime, signal))),
  }
}

export const isAwake = (runtime: Runtime): boolean => runtime.dormant !== true

const unanswered = (runtime: string, error: unknown): Readiness => ({
  runtime,
  ready: false,
  checks: [
    { name: 'check', status: 'failed', message: error instanceof Error ? error.message : String(error) },
  ],
})
