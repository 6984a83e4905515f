import type { ComponentChildren } from 'preact'
import type { JobView } from '../../src/engine/deputy.ts'
import type { Usage } from '../../src/jobs/job.ts'
import { formatCost, formatSeconds, formatSize } from '../format.ts'
import { Age, Labels } from '../parts.tsx'

export const Facts = ({ job, usage }: { job: JobView; usage: Usage | null }) => {
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Runtime', job.runtime],
    ['Where', job.where],
    ['Agent', job.agent],
    ['Submitted by', job.origin],
    ['Queue position', job.queue_position],
    [
      'Waits for',
      job.waits_for?.map(id => (
        <a key={id} href={`#/jobs/${id}`}>
          {id.slice(0, 8)}
        </a>
      )),
    ],
    ['Part of', job.parent_id && <a href={`#/jobs/${job.parent_id}`}>{job.parent_id.slice(0, 8)}</a>],
    ['Created', <Age key="created" at={job.created_at} />],
    ['Ended', job.completed_at && <Age key="ended" at={job.completed_at} />],
    ['Timeout', formatSeconds(job.timeout_seconds)],
    ['Exit', job.signal ?? job.exit_code],
    ['Attempts', job.attempts > 1 ? job.attempts : null],
    ['Output', formatSize(job.output_bytes)],
    ['Cost', usage?.costUsd == null ? null : formatCost(usage.costUsd)],
    [
      'Tokens',
      usage && `${usage.inputTokens.toLocaleString()} in, ${usage.outputTokens.toLocaleString()} out`,
    ],
  ]
  return (
    <section aria-label="Facts">
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== null && value !== undefined && value !== '')
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <p class="labels">
        <Labels labels={job.labels} />
      </p>
    </section>
  )
}
