import type { JobEvent } from '../../src/jobs/job.ts'
import { deputy } from '../deputy.ts'
import { formatTime } from '../format.ts'
import { Problem } from '../parts.tsx'
import { useEvents, useFetch } from '../use-fetch.ts'

export const Events = ({ id }: { id: string }) => {
  const { data, problem, reload } = useFetch(signal => deputy.events(id, { limit: 1000 }, signal), [id])
  useEvents(() => void reload(), { id })
  return (
    <section aria-label="Events">
      <Problem error={problem.value} />
      <ol class="events">
        {data.value?.map(({ seq, at, type, data: details }) => (
          <li key={seq}>
            <time dateTime={new Date(at).toISOString()}>{formatTime(at)}</time>
            <strong>{type.replace('_', ' ')}</strong>
            <code>{describe(details)}</code>
          </li>
        ))}
      </ol>
    </section>
  )
}

const describe = (details: JobEvent['data']): string =>
  Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    .join(', ')
