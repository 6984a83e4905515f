import type { EngineContext } from './engine-context.ts'

/** The clock by which jobs, leases and uploads age. */
export interface KnownTime {
  /** Never later than the wall clock. */
  now(): number
  /** Compares the clocks and stores the time. */
  update(): Promise<void>
}

/** The largest difference between the wall clock and the expected time that is trusted without confirmation. */
const MAX_STEP_MS = 3_600_000

/**
 * Someone may set the wall clock by years, while the daemon runs or while it is stopped; everything would then expire
 * at once. The last known time is therefore stored in the database and advances with the monotonic clock. It follows
 * the wall clock while both agree, or when a time server has confirmed the wall clock. An unconfirmed step is ignored:
 * data is then kept for longer, never for a shorter time.
 */
export const createKnownTime = ({ store, clock, log }: EngineContext): KnownTime => {
  let known: { readonly at: number; readonly monotonic: number } | undefined
  let hasWarned = false

  const expected = (): number =>
    known === undefined ? clock.now() : known.at + clock.monotonic() - known.monotonic

  const isTrusted = async (stepMs: number): Promise<boolean> =>
    Math.abs(stepMs) <= MAX_STEP_MS || (await clock.isSynchronized?.()) === true

  return {
    now: () => Math.min(clock.now(), expected()),
    update: async () => {
      known ??= { at: (await store.knownTime()) ?? clock.now(), monotonic: clock.monotonic() }
      const stepMs = clock.now() - expected()
      const trusted = await isTrusted(stepMs)
      if (!trusted && !hasWarned)
        log.warn(
          { hours: Math.round(stepMs / 3_600_000) },
          'wall clock was changed; using the last known time until a time server confirms it',
        )
      hasWarned = !trusted
      known = { at: trusted ? clock.now() : expected(), monotonic: clock.monotonic() }
      await store.saveKnownTime(known.at)
    },
  }
}
