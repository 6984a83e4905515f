import type { ResourceView } from '../../src/engine/deputy.ts'
import { formatSeconds, formatSize } from '../format.ts'
import { type CurvePoint, cpuCurve, memoryCurve, pathOf } from './resource-curves.ts'

const WIDTH = 240
const HEIGHT = 40

/** The CPU and memory that a finished job has used, over its time. */
export const Resources = ({ samples }: { samples: readonly ResourceView[] | null }) => {
  if (samples === null)
    return (
      <section aria-label="Resources" class="resources">
        <h2>Resources</h2>
        <p class="soft">Not known: this runtime does not tell, or the job was too short.</p>
      </section>
    )
  const cpu = cpuCurve(samples)
  const memory = memoryCurve(samples)
  const cores = Math.max(0, ...cpu.map(({ value }) => value))
  const peak = Math.max(0, ...memory.map(({ value }) => value))
  return (
    <section aria-label="Resources" class="resources">
      <h2>Resources</h2>
      <Curve
        name="CPU"
        points={cpu}
        most={Math.max(1, cores)}
        text={`${formatSeconds(samples.at(-1)?.cpu_seconds ?? 0)}, at most ${cores.toFixed(1)} cores`}
      />
      <Curve
        name="Memory"
        points={memory}
        most={Math.max(1, peak)}
        text={`at most ${formatSize(Math.round(peak))}`}
      />
    </section>
  )
}

interface CurveProps {
  readonly name: string
  readonly text: string
  readonly points: readonly CurvePoint[]
  readonly most: number
}

const Curve = ({ name, text, points, most }: CurveProps) => (
  <figure>
    <figcaption>
      <span>{name}</span>
      <span class="soft">{text}</span>
    </figcaption>
    {points.length > 1 && (
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path d={pathOf(points, most, WIDTH, HEIGHT)} />
      </svg>
    )}
  </figure>
)
