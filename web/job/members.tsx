import { useEffect } from 'preact/hooks'
import type { JobView } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'
import { Badge, Duration } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

/** As many as are compared side by side. */
const MAX_COMPARED = 12

/** The jobs of a batch. */
export const Members = ({ batch }: { batch: JobView }) => {
  const { data, reload } = useFetch(
    signal => deputy.list({ parent: batch.job_id, sort: 'oldest', limit: 100 }, signal),
    [batch.job_id],
  )
  // The batch reports each member that ends.
  useEffect(() => void reload(), [batch.status, batch.output_bytes])
  const jobs = data.value?.jobs ?? []
  if (jobs.length === 0) return null
  const compared = jobs.slice(0, MAX_COMPARED).map(({ job_id }) => job_id)
  return (
    <section class="batch-members" aria-label="Members">
      <ul>
        {jobs.map(job => (
          <li class="bar" key={job.job_id}>
            <Badge status={job.status} />
            <a href={`#/jobs/${job.job_id}`}>{job.task || job.job_id}</a>
            <span class="soft">
              {job.job_id.slice(-8)} <Duration job={job} />
            </span>
          </li>
        ))}
      </ul>
      {jobs.length > 1 && (
        <p class="bar">
          <a class="button" href={`#/compare?jobs=${compared.join(',')}`}>
            Compare
          </a>
        </p>
      )}
    </section>
  )
}
