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
    const readiness = await runtime
      .check(AbortSignal.any([signal, AbortSignal.timeout(LONGEST_MS)]))
      .catch((error: unknown) => unanswered(runtime.name, error))
    known.set(runtime.name, readiness)
    return readiness
  }
  return {
    known: name => known.get(name),
    checkAll: signal => Promise.all([...runtimes.values()].map(runtime => check(runtime, signal))),
  }
}

const unanswered = (runtime: string, error: unknown): Readiness => ({
  runtime,
  ready: false,
  checks: [
    { name: 'check', status: 'failed', message: error instanceof Error ? error.message : String(error) },
  ],
})
