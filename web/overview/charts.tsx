import { deputy } from '../deputy.ts'
import { formatSeconds } from '../format.ts'
import { place, setQuery } from '../router.ts'
import { useFetch } from '../use-fetch.ts'
import { Chart, type Series } from './chart.tsx'
import { RANGES, type Step, stepsOf } from './history.ts'

const EVERY_MS = 30_000
const PROVIDER_COLORS = ['--running', '--success', '--timeout', '--accent', '--failed', '--soft'] as const

const Charts = () => {
  const wanted = place.value.query.get('range')
  const range = RANGES.find(({ name }) => name === wanted) ?? RANGES[0]!
  const { data } = useFetch(signal => deputy.history(range.hours, signal), [range.hours], EVERY_MS)
  const samples = data.value
  const steps = samples === undefined ? [] : stepsOf(samples, range, Date.now())
  return (
    <section class="charts" aria-label="Over time">
      <div class="bar">
        <h2>Over time</h2>
        <fieldset class="choice" aria-label="Range">
          {RANGES.map(({ name }, index) => (
            <button
              type="button"
              key={name}
              aria-pressed={name === range.name}
              onClick={() => setQuery({ range: index === 0 ? '' : name })}
            >
              {name}
            </button>
          ))}
        </fieldset>
      </div>
      <div class="chart-grid">{steps.length > 0 && <All steps={steps} span={range.name} />}</div>
    </section>
  )
}

export default Charts

const All = ({ steps, span }: { steps: readonly Step[]; span: string }) => {
  const times = steps.map(({ at }) => at)
  const sum = (key: 'succeeded' | 'failed'): number => steps.reduce((total, step) => total + step[key], 0)
  const highest = (values: readonly (number | null)[]): string =>
    formatSeconds(Math.max(0, ...values.map(value => value ?? 0)))
  const quantiles = (key: 'wait' | 'duration'): Series[] => [
    { name: 'p50', color: '--running', values: steps.map(step => step[key][0]) },
    { name: 'p95', color: '--timeout', values: steps.map(step => step[key][1]) },
  ]
  const providers = [...new Set(steps.flatMap(({ slots }) => Object.keys(slots)))].sort()
  return (
    <>
      <Chart
        title="Finished jobs"
        summary={`In the last ${span}, ${sum('succeeded')} jobs succeeded and ${sum('failed')} failed.`}
        times={times}
        series={[
          // Drawn behind each other: the failed part stands in front of the whole.
          {
            name: 'success',
            color: '--success',
            isBar: true,
            values: steps.map(step => step.succeeded + step.failed),
          },
          { name: 'failed', color: '--failed', isBar: true, values: steps.map(step => step.failed) },
        ]}
        format={formatCount}
      />
      <Chart
        title="Wait in the queue"
        summary={`At most ${highest(quantiles('wait')[1]!.values)} (p95) in the last ${span}.`}
        times={times}
        series={quantiles('wait')}
        format={formatSeconds}
      />
      <Chart
        title="Duration"
        summary={`At most ${highest(quantiles('duration')[1]!.values)} (p95) in the last ${span}.`}
        times={times}
        series={quantiles('duration')}
        format={formatSeconds}
      />
      <Chart
        title="Slots in use"
        summary={providers.length === 0 ? 'No slot was in use.' : `Slots of ${providers.join(', ')}.`}
        times={times}
        series={providers.map((name, index) => ({
          name,
          color: PROVIDER_COLORS[index % PROVIDER_COLORS.length]!,
          values: steps.map(({ slots }) => slots[name] ?? 0),
        }))}
        format={formatCount}
      />
    </>
  )
}

/** Jobs are whole. */
const formatCount = (value: number): string => (Number.isInteger(value) ? value.toLocaleString() : '')
