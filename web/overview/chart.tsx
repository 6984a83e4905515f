import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

export interface Series {
  readonly name: string
  /** A colour token of the theme, such as `--success`. */
  readonly color: string
  readonly values: readonly (number | null)[]
  readonly isBar?: boolean
}

export interface ChartProps {
  readonly title: string
  /** Says in words what the picture shows. */
  readonly summary: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  format(value: number): string
}

const HEIGHT = 140

export const Chart = ({ title, summary, times, series, format }: ChartProps) => {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const draw = (): uPlot => new uPlot(optionsOf(element, series, format), dataOf(times, series), element)
    let plot = draw()
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    resize.observe(element)
    // Canvas colours are read once: draw again in the other theme.
    const theme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = (): void => {
      plot.destroy()
      plot = draw()
    }
    theme.addEventListener('change', redraw)
    return () => {
      resize.disconnect()
      theme.removeEventListener('change', redraw)
      plot.destroy()
    }
  }, [times, series])
  return (
    <figure class="chart card">
      <figcaption>
        <h2>{title}</h2>
        <span class="legend">
          {series.map(({ name, color }) => (
            <span key={name} class={`key ${color.slice(2)}`}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={place} role="img" aria-label={summary} />
    </figure>
  )
}

const dataOf = (times: readonly number[], series: readonly Series[]): uPlot.AlignedData => [
  [...times],
  // A bar of no height would still be drawn as a line.
  ...series.map(({ values, isBar }) => values.map(value => (isBar && value === 0 ? null : value))),
]

const optionsOf = (
  element: HTMLElement,
  series: readonly Series[],
  format: (value: number) => string,
): uPlot.Options => {
  const style = getComputedStyle(element)
  const color = (token: string): string => resolved(element, token)
  const axis: uPlot.Axis = {
    stroke: color('--soft'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 12, 0, 0],
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 24, space: 70, values: (_, splits) => splits.map(at => clock(at, splits)) },
      { ...axis, size: 56, space: 28, values: (_, splits) => splits.map(format) },
    ],
    series: [
      {},
      ...series.map(
        ({ color: token, isBar, values }): uPlot.Series => ({
          stroke: color(token),
          width: 1.5,
          ...(isBar && { fill: color(token), paths: uPlot.paths.bars!({ size: [0.7, 24] }) }),
          // A line needs two neighbours; a single value is a point.
          points: { show: !isBar && values.some(value => value === null), size: 4 },
          spanGaps: false,
        }),
      ),
    ],
  }
}

const DAY_SECONDS = 86_400

/** The time of day, or the day where the axis spans several. */
const clock = (at: number, splits: readonly number[]): string => {
  const isLong = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 2 * DAY_SECONDS
  return new Date(at * 1000).toLocaleString(
    [],
    isLong ? { month: 'short', day: 'numeric' } : { hour: '2-digit', minute: '2-digit' },
  )
}

/** Tokens are light-dark() pairs; the style of an element resolves them for the theme. */
const resolved = (element: HTMLElement, token: string): string => {
  element.style.color = `var(${token})`
  const { color } = getComputedStyle(element)
  element.style.removeProperty('color')
  return color
}
