import { createDeadline } from '../jobs/deadline.ts'
import type { Clock, Provider, Readiness } from '../ports.ts'

export interface ReadinessCache {
  /** Returns the cached result of the last check. */
  known(name: string): Readiness | undefined
  /** Checks all providers now, in parallel. */
  checkAll(signal: AbortSignal): Promise<Readiness[]>
  /** Repeats old failed checks; true when a provider has become ready. */
  recheck(signal: AbortSignal): Promise<boolean>
}

const CHECK_TIMEOUT_MS = 30_000
/** How long a failed check is cached, so that repeated rejected submits do not each cost a check. */
const CACHE_MS = 5_000

export const createReadinessCache = (
  providers: ReadonlyMap<string, Provider>,
  clock: Clock,
): ReadinessCache => {
  const known = new Map<string, Readiness>()
  const checkedAt = new Map<string, number>()
  const check = async (provider: Provider, signal: AbortSignal): Promise<Readiness> => {
    const deadline = createDeadline([signal], CHECK_TIMEOUT_MS)
    const readiness = await provider
      .check(deadline.signal)
      .catch((error: unknown) => failedCheck(provider.name, error))
      .finally(deadline.clear)
    known.set(provider.name, readiness)
    checkedAt.set(provider.name, clock.monotonic())
    return readiness
  }
  return {
    known: name => known.get(name),
    checkAll: signal =>
      Promise.all([...providers.values()].filter(hasSlots).map(provider => check(provider, signal))),
    recheck: async signal => {
      const notReady = [...providers.values()].filter(
        provider =>
          hasSlots(provider) &&
          known.get(provider.name)?.ready === false &&
          clock.monotonic() - (checkedAt.get(provider.name) ?? 0) > CACHE_MS,
      )
      const answers = await Promise.all(notReady.map(provider => check(provider, signal)))
      return answers.some(({ ready }) => ready)
    },
  }
}

export const hasSlots = (provider: Provider): boolean => provider.slots > 0

const failedCheck = (runtime: string, error: unknown): Readiness => ({
  runtime,
  ready: false,
  checks: [
    { name: 'check', status: 'failed', message: error instanceof Error ? error.message : String(error) },
  ],
})
