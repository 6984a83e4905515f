import { isQuiet, minuteOf, SAMPLE_MS, type Sample } from '../jobs/sample.ts'
import type { EngineContext } from './engine-context.ts'

const KEEP_MS = 7 * 86_400_000
/** A daemon that was suspended does not measure the whole night afterwards. */
const MAX_MISSED = 10

export interface History {
  start(): void
  /** The stored minutes and the current one, oldest first. Quiet minutes are left out. */
  read(since: number): Promise<Sample[]>
}

/** Measures each minute when it is over and stores it, so that charts outlive restarts and deleted jobs. */
export const createHistory = ({ store, clock, closing, log }: EngineContext): History => {
  let next = minuteOf(clock.now())

  const record = async (): Promise<void> => {
    const current = minuteOf(clock.now())
    next = Math.max(next, current - MAX_MISSED * SAMPLE_MS)
    // After the clock was set back, continue from there.
    if (next > current + SAMPLE_MS) next = current
    for (; next < current; next += SAMPLE_MS) {
      const sample = await store.measureMinute(next)
      if (!isQuiet(sample)) await store.saveSample(sample, current - KEEP_MS)
    }
  }

  return {
    start: () => {
      const timer = setInterval(() => {
        record().catch(error => log.warn({ err: error }, 'cannot store the figures of the last minute'))
      }, SAMPLE_MS / 4)
      timer.unref()
      closing.addEventListener('abort', () => clearInterval(timer), { once: true })
    },
    read: async since => {
      const stored = await store.samples(Math.max(since, clock.now() - KEEP_MS))
      const last = stored.at(-1)?.at ?? 0
      const fresh: Sample[] = []
      for (let at = Math.max(next, last + SAMPLE_MS); at <= clock.now(); at += SAMPLE_MS)
        fresh.push(await store.measureMinute(at))
      return [...stored, ...fresh.filter(sample => sample.at >= minuteOf(since) && !isQuiet(sample))]
    },
  }
}
