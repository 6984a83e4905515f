import type { JobSummary } from '../../src/engine/deputy.ts'
import { Age, Badge, Duration, Labels } from '../parts.tsx'

interface Props {
  readonly job: JobSummary
  readonly isActive: boolean
  readonly isSelected: boolean
  onSelect(): void
}

export const JobRow = ({ job, isActive, isSelected, onSelect }: Props) => (
  <div class={`job-row${isActive ? ' active' : ''}${isSelected ? ' selected' : ''}`}>
    <input type="checkbox" aria-label={`Select ${job.task}`} checked={isSelected} onChange={onSelect} />
    <Badge status={job.status} />
    <a class="task" href={`#/jobs/${job.job_id}`}>
      <span>{job.task || job.job_id}</span>
      <Labels labels={job.labels} />
    </a>
    <span class="cell runtime">{job.agent === 'script' ? job.runtime : `${job.agent}, ${job.runtime}`}</span>
    <span class="cell age">
      <Age at={job.created_at} />
    </span>
    <span class="cell took">
      <Duration job={job} />
    </span>
    <span class="cell exit">{job.exit_code !== null && job.exit_code !== 0 && `exit ${job.exit_code}`}</span>
  </div>
)
