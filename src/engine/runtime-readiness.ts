import { createDeadline } from '../jobs/deadline.ts'
import type { Clock, Readiness, Runtime } from '../ports.ts'

export interface ReadinessCache {
  /** Returns the cached result of the last check. */
  known(name: string): Readiness | undefined
  /** Checks all runtimes now, in parallel. */
  checkAll(signal: AbortSignal): Promise<Readiness[]>
  /** Repeats old failed checks; true when a runtime has become ready. */
  recheck(signal: AbortSignal): Promise<boolean>
}

const CHECK_TIMEOUT_MS = 30_000
/** How long a failed check is cached, so that repeated rejected submits do not each cost a check. */
const CACHE_MS = 5_000

export const createReadinessCache = (
  runtimes: ReadonlyMap<string, Runtime>,
  clock: Clock,
): ReadinessCache => {
  const known = new Map<string, Readiness>()
  const checkedAt = new Map<string, number>()
  const check = async (runtime: Runtime, signal: AbortSignal): Promise<Readiness> => {
    const deadline = createDeadline([signal], CHECK_TIMEOUT_MS)
    const readiness = await runtime
      .check(deadline.signal)
      .catch((error: unknown) => failedCheck(runtime.name, error))
      .finally(deadline.clear)
    known.set(runtime.name, readiness)
    checkedAt.set(runtime.name, clock.monotonic())
    return readiness
  }
  return {
    known: name => known.get(name),
    checkAll: signal =>
      Promise.all([...runtimes.values()].filter(isAwake).map(runtime => check(runtime, signal))),
    recheck: async signal => {
      const notReady = [...runtimes.values()].filter(
        runtime =>
          isAwake(runtime) &&
          known.get(runtime.name)?.ready === false &&
          clock.monotonic() - (checkedAt.get(runtime.name) ?? 0) > CACHE_MS,
      )
      const answers = await Promise.all(notReady.map(runtime => check(runtime, signal)))
      return answers.some(({ ready }) => ready)
    },
  }
}

export const isAwake = (runtime: Runtime): boolean => runtime.dormant !== true

const failedCheck = (runtime: string, error: unknown): Readiness => ({
  runtime,
  ready: false,
  checks: [
    { name: 'check', status: 'failed', message: error instanceof Error ? error.message : String(error) },
  ],
})
