import { deputy } from '../deputy.ts'
import { Age } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

const EVERY_MS = 10_000

/** The daemons that share a database. Nothing where there is one. */
export const Daemons = () => {
  const { data } = useFetch(deputy.daemons, [], EVERY_MS)
  if (data.value === undefined || data.value.length === 0) return null
  return (
    <section class="card">
      <h2>Daemons</h2>
      <div class="scroll">
        <table class="guests">
          <thead>
            <tr>
              <th>Name</th>
              <th>State</th>
              <th>Jobs</th>
              <th>Slots</th>
              <th>Started</th>
            </tr>
          </thead>
          <tbody>
            {data.value.map(({ daemon_id, name, host, state, jobs, runtimes, started_at }) => (
              <tr key={daemon_id}>
                <td>
                  {name} <span class="soft">{host}</span>
                </td>
                <td class={`health ${state === 'up' ? 'healthy' : 'overloaded'}`}>{state}</td>
                <td>{jobs}</td>
                <td>
                  {Object.entries(runtimes)
                    .map(([runtime, slots]) => `${runtime} ${slots}`)
                    .join(', ')}
                </td>
                <td>
                  <Age at={started_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
