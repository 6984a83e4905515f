import type { WireEvent } from '../../src/client/wire-event.ts'
import { formatTime } from '../format.ts'
import { Problem } from '../parts.tsx'
import { useEvents, useFetch } from '../use-fetch.ts'

export const Events = ({ id }: { id: string }) => {
  const path = `/api/jobs/${id}/events`
  const { data, problem, reload } = useFetch<{ readonly events: readonly WireEvent[] }>(`${path}?limit=1000`)
  useEvents(`${path}/stream`, () => void reload())
  return (
    <section aria-label="Events">
      <Problem error={problem.value} />
      <ol class="events">
        {data.value?.events.map(({ seq, at, type, data: details }) => (
          <li key={seq}>
            <time dateTime={at}>{formatTime(at)}</time>
            <strong>{type.replace('_', ' ')}</strong>
            <code>{describe(details)}</code>
          </li>
        ))}
      </ol>
    </section>
  )
}

const describe = (details: WireEvent['data']): string =>
  Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    .join(', ')
