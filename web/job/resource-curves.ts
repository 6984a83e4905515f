import type { ResourceView } from '../../src/engine/deputy.ts'

export interface CurvePoint {
  readonly seconds: number
  readonly value: number
}

/** How many cores were busy between each two samples. */
export const cpuCurve = (samples: readonly ResourceView[]): CurvePoint[] =>
  samples.map(({ seconds, cpu_seconds }, index) => {
    const before = samples[index - 1] ?? { seconds: 0, cpu_seconds: 0 }
    const span = seconds - before.seconds
    return { seconds, value: span <= 0 ? 0 : Math.max(0, cpu_seconds - before.cpu_seconds) / span }
  })

export const memoryCurve = (samples: readonly ResourceView[]): CurvePoint[] =>
  samples.map(({ seconds, memory_bytes }) => ({ seconds, value: memory_bytes }))

/** An area below the points, as the path of an SVG. `most` is the value at the top. */
export const pathOf = (
  points: readonly CurvePoint[],
  most: number,
  width: number,
  height: number,
): string => {
  const end = Math.max(points.at(-1)?.seconds ?? 0, Number.EPSILON)
  const at = ({ seconds, value }: CurvePoint): string =>
    `${((seconds / end) * width).toFixed(1)} ${(height - (value / most) * height).toFixed(1)}`
  const [first] = points
  if (first === undefined) return ''
  return `M0 ${height}L${at({ ...first, seconds: 0 })}L${points.map(at).join('L')}L${width} ${height}Z`
}
