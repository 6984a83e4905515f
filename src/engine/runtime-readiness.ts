import { createDeadline } from '../jobs/deadline.ts'
import type { Clock, Readiness, Runtime } from '../ports.ts'

export interface Readinesses {
  /** The last known answer, never waited for. */
  known(name: string): Readiness | undefined
  /** Asks all runtimes now, side by side. */
  checkAll(signal: AbortSignal): Promise<Readiness[]>
  /** Asks those again that were not ready a while ago; true when one of them is now. */
  recheck(signal: AbortSignal): Promise<boolean>
}

const LONGEST_MS = 30_000
/** How long a bad answer stands; a caller who is refused again and again must not cost a check each time. */
const STANDS_MS = 5_000

export const createReadinesses = (runtimes: ReadonlyMap<string, Runtime>, clock: Clock): Readinesses => {
  const known = new Map<string, Readiness>()
  const askedAt = new Map<string, number>()
  const check = async (runtime: Runtime, signal: AbortSignal): Promise<Readiness> => {
    const deadline = createDeadline([signal], LONGEST_MS)
    const readiness = await runtime
      .check(deadline.signal)
      .catch((error: unknown) => unanswered(runtime.name, error))
      .finally(deadline.clear)
    known.set(runtime.name, readiness)
    askedAt.set(runtime.name, clock.monotonic())
    return readiness
  }
  return {
    known: name => known.get(name),
    checkAll: signal =>
      Promise.all([...runtimes.values()].filter(isAwake).map(runtime => check(runtime, signal))),
    recheck: async signal => {
      const doubtful = [...runtimes.values()].filter(
        runtime =>
          isAwake(runtime) &&
          known.get(runtime.name)?.ready === false &&
          clock.monotonic() - (askedAt.get(runtime.name) ?? 0) > STANDS_MS,
      )
      const answers = await Promise.all(doubtful.map(runtime => check(runtime, signal)))
      return answers.some(({ ready }) => ready)
    },
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
