import type { JobView } from '../../src/engine/deputy.ts'
import { now } from '../clock.ts'
import { formatSeconds } from '../format.ts'
import { phaseBars } from './phase-bars.ts'

/** A phase of a few milliseconds beside one of minutes must still be seen. */
const LEAST_PERCENT = 1.5

/** The phases of a job, one below the other, each where it began. */
export const Timeline = ({ job }: { job: JobView }) => {
  const bars = phaseBars(job, now.value)
  const total = Math.max(1, ...bars.map(({ start, ms }) => start + ms))
  return (
    <section aria-label="Timeline" class="timeline">
      <h2>Timeline</h2>
      {bars.map(({ name, ms, start }) => (
        <div class="phase" key={name}>
          <span>{name}</span>
          <span class="track">
            <i
              class={name === 'running' ? job.status : ''}
              style={{
                marginInlineStart: `${Math.min(100 - LEAST_PERCENT, (start / total) * 100)}%`,
                width: `${Math.max(LEAST_PERCENT, (ms / total) * 100)}%`,
              }}
            />
          </span>
          <span>{formatSeconds(ms / 1000)}</span>
        </div>
      ))}
    </section>
  )
}
