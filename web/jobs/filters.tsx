import { useSignalEffect } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { STATES } from '../../src/jobs/states.ts'
import { place, setQuery } from '../router.ts'
import type { Filter } from './job-list.ts'

/** The filter that the address holds. */
export const filterOf = (query: URLSearchParams): Filter => {
  const read = (name: string, key: string) => {
    const value = query.get(name)?.trim()
    return value ? { [key]: value } : {}
  }
  return {
    ...read('status', 'status'),
    ...read('runtime', 'runtime'),
    ...read('label', 'label'),
    ...read('q', 'search'),
  }
}

const TYPING_MS = 200

export const Filters = ({ runtimes }: { runtimes: readonly string[] }) => {
  const { query } = place.value
  return (
    <search class="filters">
      <TextFilter name="q" label="Search tasks and ids" placeholder="Search  /" />
      <select
        aria-label="Status"
        value={query.get('status') ?? ''}
        onChange={event => setQuery({ status: event.currentTarget.value })}
      >
        <option value="">any status</option>
        {STATES.map(state => (
          <option key={state}>{state}</option>
        ))}
      </select>
      <select
        aria-label="Runtime"
        value={query.get('runtime') ?? ''}
        onChange={event => setQuery({ runtime: event.currentTarget.value })}
      >
        <option value="">any runtime</option>
        {runtimes.map(runtime => (
          <option key={runtime}>{runtime}</option>
        ))}
      </select>
      <TextFilter name="label" label="Label" placeholder="label or label=value" />
    </search>
  )
}

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
