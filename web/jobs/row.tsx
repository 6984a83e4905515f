import type { JobSummary } from '../../src/engine/deputy.ts'
import { Age, Badge, Duration, Labels } from '../parts.tsx'

interface Props {
  readonly job: JobSummary
  readonly isActive: boolean
  readonly isSelected: boolean
  /** Of a batch: its members are shown. */
  readonly isOpen: boolean
  onSelect(): void
  onFold(): void
}

export const isBatch = (job: JobSummary): boolean => job.runtime === 'batch'

export const JobRow = ({ job, isActive, isSelected, isOpen, onSelect, onFold }: Props) => (
  <div
    class={`job-row${isActive ? ' active' : ''}${isSelected ? ' selected' : ''}${job.parent_id ? ' member-row' : ''}`}
  >
    <input type="checkbox" aria-label={`Select ${job.task}`} checked={isSelected} onChange={onSelect} />
    <Badge status={job.status} />
    <span class="task-cell">
      {isBatch(job) && (
        <button
          type="button"
          class="quiet fold"
          aria-expanded={isOpen}
          aria-label={`Members of ${job.task}`}
          onClick={onFold}
        >
          {isOpen ? '▾' : '▸'}
        </button>
      )}
      <a class="task" href={`#/jobs/${job.job_id}`}>
        <span>{job.task || job.job_id}</span>
        <Labels labels={job.labels} />
      </a>
    </span>
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
