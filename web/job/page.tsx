import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JobResult } from '../../src/engine/deputy.ts'
import { BATCH } from '../../src/jobs/batch-command.ts'
import { AppError } from '../../src/jobs/errors.ts'
import { isTerminal } from '../../src/jobs/states.ts'
import { deputy } from '../deputy.ts'
import { LogView } from '../log/log-view.tsx'
import { Badge, Copy, Duration, Empty, Problem } from '../parts.tsx'
import { place } from '../router.ts'
import { useEvents, useFetch } from '../use-fetch.ts'
import { JobActions } from './actions.tsx'
import { Artifacts } from './artifacts.tsx'
import { ConversationView } from './conversation-view.tsx'
import { Events } from './events.tsx'
import { Facts } from './facts.tsx'
import { Members } from './members.tsx'
import { PortForward } from './port-forward.tsx'
import { Resources } from './resources.tsx'
import { TaskView } from './task-view.tsx'
import { Timeline } from './timeline.tsx'

export const JobPage = ({ id }: { id: string }) => {
  const job = useFetch(signal => deputy.get(id, signal), [id])
  useEvents(() => void job.reload(), { id })
  const result = useSignal<JobResult | undefined>(undefined)
  const view = job.data.value
  const isFinished = view !== undefined && isTerminal(view.status)
  useEffect(() => {
    // A job has a result only after it has ended.
    if (!isFinished) return
    deputy.result(id, { maxBytes: 0 }).then(
      found => {
        result.value = found
      },
      error => {
        job.problem.value = error
      },
    )
  }, [isFinished])
  if (view === undefined) {
    const error = job.problem.value
    if (error instanceof AppError && error.code === 'not_found')
      return (
        <Empty title="No such job">
          <p>
            It may have been deleted. <a href="#/jobs">All jobs</a>
          </p>
        </Empty>
      )
    return error === undefined ? <div class="skeleton" aria-hidden="true" /> : <Problem error={error} />
  }
  return (
    <article class="job">
      <header>
        <h1>
          <Badge status={view.status} />
          <span>{view.task || view.job_id}</span>
        </h1>
        <p class="soft bar">
          <Duration job={view} />
          <code>{view.job_id}</code>
          <Copy text={view.job_id} />
        </p>
        <JobActions job={view} onChange={() => void job.reload()} />
        <Problem error={job.problem.value} />
        {view.error !== null && (
          <p class="problem">
            {view.error.message} <small>{view.error.hint}</small>
          </p>
        )}
        {view.progress !== null && !isTerminal(view.status) && <p class="progress">{view.progress}</p>}
      </header>
      <div class="columns">
        <div class="main-column">
          {view.runtime === BATCH && <Members batch={view} />}
          <Tabs id={id} agent={view.agent} result={result.value} />
        </div>
        <aside>
          <Timeline job={view} />
          <PortForward job={view} />
          {result.value !== undefined && view.runtime !== BATCH && view.started_at !== null && (
            <Resources samples={result.value.resources} />
          )}
          <Facts job={view} usage={result.value?.usage ?? null} />
        </aside>
      </div>
    </article>
  )
}

interface TabsProps {
  readonly id: string
  readonly agent: string
  readonly result: JobResult | undefined
}

const Tabs = ({ id, agent, result }: TabsProps) => {
  const tab = place.value.query.get('tab') ?? 'log'
  const count = result?.artifacts.length ?? 0
  const tabs = [
    ['log', 'Log'],
    ...(agent === 'claude' ? [['conversation', 'Conversation'] as const] : []),
    ['task', 'Task'],
    ['artifacts', count > 0 ? `Artifacts ${count}` : 'Artifacts'],
    ['events', 'Events'],
  ] as const
  return (
    <>
      <nav class="tabs" aria-label="Parts of the job">
        {tabs.map(([name, title]) => (
          <a
            key={name}
            href={`#/jobs/${id}${name === 'log' ? '' : `?tab=${name}`}`}
            aria-current={name === tab ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
        <a href={`#/review/${id}`}>Review</a>
      </nav>
      {tab === 'conversation' && <ConversationView id={id} result={result} />}
      {tab === 'task' && <TaskView id={id} />}
      {tab === 'artifacts' && <Artifacts id={id} result={result} />}
      {tab === 'events' && <Events id={id} />}
      {tab === 'log' && <LogView id={id} />}
    </>
  )
}
