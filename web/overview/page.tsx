import type { JobSummary } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'
import { lazy } from '../lazy.tsx'
import { Age, Badge, Command, Duration, Empty, Problem } from '../parts.tsx'
import { Daemons } from '../system/daemons.tsx'
import { useEvents, useFetch } from '../use-fetch.ts'
import { NeedsYou } from './needs-you.tsx'
import { Nodes } from './nodes.tsx'

const Charts = lazy(() => import('./charts.tsx'), <div class="charts waiting" aria-hidden="true" />)

const SHOWN = 6

export const OverviewPage = () => {
  const daemon = useFetch(signal => deputy.daemon(undefined, signal))
  const running = useFetch(signal => deputy.list({ status: 'running', limit: SHOWN }, signal))
  const failed = useFetch(signal => deputy.list({ status: 'failed', limit: SHOWN }, signal))
  useEvents(() => void Promise.all([daemon.reload(), running.reload(), failed.reload()]), {
    types: ['submitted', 'state'],
  })
  const { jobs = {}, last_day: day = {} } = daemon.data.value ?? {}
  const total = Object.values(jobs).reduce((sum, count) => sum + count, 0)
  const wrong = (day.failed ?? 0) + (day.timeout ?? 0)
  const good = day.success ?? 0
  return (
    <section class="overview">
      <h1 class="hidden">Overview</h1>
      <Problem error={daemon.problem.value} />
      <div class="tiles">
        <Tile href="#/jobs?status=running" name="Running" value={jobs.running ?? 0} tone="running" />
        <Tile
          href="#/jobs?status=pending"
          name="Waiting"
          value={(jobs.pending ?? 0) + (jobs.provisioning ?? 0)}
        />
        <Tile
          href="#/jobs?status=failed"
          name="Failed, 24 h"
          value={wrong}
          tone={wrong > 0 ? 'failed' : undefined}
        />
        <Tile
          href="#/jobs?status=success"
          name="Success rate, 24 h"
          value={good + wrong === 0 ? '–' : `${Math.floor((100 * good) / (good + wrong))} %`}
          tone={good > 0 && wrong === 0 ? 'success' : undefined}
        />
      </div>
      <NeedsYou />
      {daemon.data.value !== undefined && total === 0 ? (
        <Empty title="No jobs yet">
          <p>
            A job runs a command on an isolated machine. <a href="#/new">Submit one here</a>, or in a
            terminal:
          </p>
          <Command text="deputy run -- echo hello" />
        </Empty>
      ) : (
        <>
          <Charts />
          <div class="halves">
            <Short title="Running now" jobs={running.data.value?.jobs} none="Nothing runs." />
            <Short title="Failed last" jobs={failed.data.value?.jobs} none="Nothing failed." />
          </div>
        </>
      )}
      <Nodes />
      <Daemons />
    </section>
  )
}

interface TileProps {
  readonly href: string
  readonly name: string
  readonly value: number | string
  readonly tone?: string | undefined
}

const Tile = ({ href, name, value, tone = '' }: TileProps) => (
  <a class={`tile ${tone}`} href={href}>
    <strong>{typeof value === 'number' ? value.toLocaleString() : value}</strong>
    <span>{name}</span>
  </a>
)

interface ShortProps {
  readonly title: string
  readonly jobs: readonly JobSummary[] | undefined
  readonly none: string
}

const Short = ({ title, jobs, none }: ShortProps) => (
  <section class="card">
    <h2>{title}</h2>
    {jobs?.length === 0 && <p class="soft">{none}</p>}
    {jobs?.map(job => (
      <a class="short" key={job.job_id} href={`#/jobs/${job.job_id}`}>
        <Badge status={job.status} />
        <span class="task">{job.task || job.job_id}</span>
        <span class="soft">
          {job.duration_seconds === null ? <Duration job={job} /> : <Age at={job.created_at} />}
        </span>
      </a>
    ))}
  </section>
)
