import type { EngineContext } from './engine-context.ts'

/** The time by which jobs, leases and uploads age. */
export interface KnownTime {
  /** Never later than the wall clock. */
  now(): number
  /** Compares the clocks and writes the time down. */
  update(): Promise<void>
}

/** Further than this the wall clock may not run ahead of the other clock, or of the last time that was written down. */
const LARGEST_STEP_MS = 3_600_000

/**
 * The wall clock may be set by years, while the daemon runs or while it does not, and would then age everything at
 * once. So the last known time is kept in the database and goes on by the monotonic clock; the wall clock is followed
 * while both agree, or when it is synchronised with a time server. A step that nobody confirms does not count: things
 * are kept for longer.
 */
export const createKnownTime = ({ store, clock, log }: EngineContext): KnownTime => {
  let known: { readonly at: number; readonly monotonic: number } | undefined
  let isTold = false

  const expected = (): number =>
    known === undefined ? clock.now() : known.at + clock.monotonic() - known.monotonic

  const isTrusted = async (stepMs: number): Promise<boolean> =>
    Math.abs(stepMs) <= LARGEST_STEP_MS || (await clock.isSynchronized?.()) === true

  return {
    now: () => Math.min(clock.now(), expected()),
    update: async () => {
      known ??= { at: (await store.knownTime()) ?? clock.now(), monotonic: clock.monotonic() }
      const stepMs = clock.now() - expected()
      const trusted = await isTrusted(stepMs)
      if (!trusted && !isTold)
        log.warn(
          { hours: Math.round(stepMs / 3_600_000) },
          'the clock was set; jobs age by the last known time until a time server confirms it',
        )
      isTold = !trusted
      known = { at: trusted ? clock.now() : expected(), monotonic: clock.monotonic() }
      await store.saveKnownTime(known.at)
    },
  }
}
