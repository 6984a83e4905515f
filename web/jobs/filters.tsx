import { useSignalEffect } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { STATES } from '../../src/jobs/states.ts'
import { place, setQuery } from '../router.ts'
import type { Filter } from './job-list.ts'

const HOUR_MS = 3_600_000

/** The URL holds an age, not a time, so that a link to the last hour always shows the last hour. */
const AGES: Readonly<Record<string, number>> = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }

/** Parameters of the address that are filters of the API under the same name. */
const PLAIN = ['status', 'runtime', 'agent', 'label', 'node', 'origin', 'sort'] as const

/** The filter that the address holds. */
export const filterOf = (query: URLSearchParams): Filter => {
  const filter: Record<string, string> = {}
  for (const name of PLAIN) {
    const value = query.get(name)?.trim()
    if (value) filter[name] = value
  }
  const search = query.get('q')?.trim()
  if (search) filter.search = search
  const age = query.get('age') ?? ''
  if (AGES[age] !== undefined) filter.age = age
  return filter
}

/** What the API is asked for. Members of batches are folded into them, unless something is looked for. */
export const requestOf = ({ age, ...filter }: Filter, now: number): Readonly<Record<string, string>> => ({
  ...filter,
  ...(age !== undefined && { since: new Date(now - (AGES[age] ?? 0) * HOUR_MS).toISOString() }),
  ...(!isFiltered({ age, ...filter }) && { parent: 'none' }),
})

export const isFiltered = ({ sort: _, ...filter }: Filter): boolean =>
  Object.values(filter).some(value => value !== undefined)

const TYPING_MS = 200

export interface Known {
  readonly runtimes: readonly string[]
  readonly agents: readonly string[]
}

export const Filters = ({ runtimes, agents }: Known) => {
  const { query } = place.value
  const isMoreSet = ['label', 'node', 'origin'].some(name => query.has(name))
  return (
    <search class="filters">
      <TextFilter name="q" label="Search tasks and ids" placeholder="Search  /" />
      <Choice name="status" label="Status" none="any status" values={STATES} />
      <Choice name="runtime" label="Provider" none="any provider" values={runtimes} />
      <Choice name="agent" label="Agent" none="any agent" values={agents} />
      <Choice name="age" label="Time" none="any time" values={Object.keys(AGES)} />
      <Choice name="sort" label="Order" none="newest first" values={['oldest', 'longest']} />
      <details class="more" open={isMoreSet || undefined}>
        <summary>More</summary>
        <div class="filters">
          <TextFilter name="label" label="Label" placeholder="label or label=value" />
          <TextFilter name="node" label="Node" placeholder="node" />
          <TextFilter name="origin" label="Submitted by" placeholder="cli, mcp, console…" />
        </div>
      </details>
    </search>
  )
}

interface ChoiceProps {
  readonly name: string
  readonly label: string
  readonly none: string
  readonly values: readonly string[]
}

const Choice = ({ name, label, none, values }: ChoiceProps) => (
  <select
    aria-label={label}
    value={place.value.query.get(name) ?? ''}
    onChange={event => setQuery({ [name]: event.currentTarget.value })}
  >
    <option value="">{none}</option>
    {values.map(value => (
      <option key={value} value={value}>
        {name === 'age' ? `last ${value}` : name === 'sort' ? `${value} first` : value}
      </option>
    ))}
  </select>
)

interface TextProps {
  readonly name: string
  readonly label: string
  readonly placeholder: string
}

/** Asks the daemon when the user pauses, not at every letter. */
const TextFilter = ({ name, label, placeholder }: TextProps) => {
  const input = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useSignalEffect(() => {
    const value = place.value.query.get(name) ?? ''
    if (input.current !== null && document.activeElement !== input.current) input.current.value = value
  })
  return (
    <input
      ref={input}
      type="search"
      class={`filter-${name}`}
      aria-label={label}
      placeholder={placeholder}
      defaultValue={place.value.query.get(name) ?? ''}
      onInput={({ currentTarget }) => {
        clearTimeout(timer.current)
        timer.current = setTimeout(() => setQuery({ [name]: currentTarget.value }), TYPING_MS)
      }}
      onKeyDown={event => {
        if (event.key === 'Escape' || event.key === 'Enter') event.currentTarget.blur()
      }}
    />
  )
}
