import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { JobSummary } from '../../src/engine/deputy.ts'
import { useKeys } from '../keys.ts'
import { Command, Empty, Problem } from '../parts.tsx'
import { go, place } from '../router.ts'
import { Actions } from './actions.tsx'
import { Filters, filterOf, isFiltered, type Known } from './filters.tsx'
import { createJobList, type Filter } from './job-list.ts'
import { isBatch, JobRow } from './row.tsx'
import { useBatches } from './use-batches.ts'
import { VirtualRows } from './virtual-rows.tsx'

export const JobsPage = () => {
  const filter = filterOf(place.value.query)
  const known = useSignal<Known>({ runtimes: [], agents: [] })
  const learn = (jobs: readonly JobSummary[]): void => {
    const all = (key: 'runtime' | 'agent', before: readonly string[]): string[] =>
      [...new Set([...before, ...jobs.map(job => job[key]), ...(filter[key] ? [filter[key]] : [])])].sort()
    const next = {
      runtimes: all('runtime', known.value.runtimes),
      agents: all('agent', known.value.agents),
    }
    if (JSON.stringify(next) !== JSON.stringify(known.value)) known.value = next
  }
  return (
    <section class="jobs">
      <h1 class="hidden">Jobs</h1>
      <Filters {...known.value} />
      <List key={JSON.stringify(filter)} filter={filter} onJobs={learn} />
    </section>
  )
}

const NARROW = matchMedia('(max-width: 760px)')

interface ListProps {
  readonly filter: Filter
  onJobs(jobs: readonly JobSummary[]): void
}

const List = ({ filter, onJobs }: ListProps) => {
  const stop = useMemo(() => new AbortController(), [])
  const list = useMemo(() => createJobList(filter, stop.signal), [])
  const selected = useSignal<ReadonlySet<string>>(new Set())
  const activeId = useSignal<string | undefined>(undefined)
  const isNarrow = useSignal(NARROW.matches)
  useEffect(() => {
    const change = (): void => {
      isNarrow.value = NARROW.matches
    }
    NARROW.addEventListener('change', change)
    return () => {
      NARROW.removeEventListener('change', change)
      stop.abort()
    }
  }, [])
  const { opened, toggleBatch } = useBatches(list.jobs.value)
  const jobs = list.jobs.value.flatMap(job => [job, ...(opened.get(job.job_id) ?? [])])
  useEffect(() => onJobs(list.jobs.value), [list.jobs.value])
  const active = activeId.value === undefined ? -1 : jobs.findIndex(job => job.job_id === activeId.value)

  const toggle = (id: string): void => {
    const next = new Set(selected.value)
    if (!next.delete(id)) next.add(id)
    selected.value = next
  }
  const move = (by: number): void => {
    // Keys may come faster than the page is drawn.
    const from = jobs.findIndex(job => job.job_id === activeId.value)
    activeId.value = jobs[Math.min(jobs.length - 1, Math.max(0, from + by))]?.job_id
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(activeId.value !== undefined && {
      Enter: () => go(`#/jobs/${activeId.value}`),
      x: () => toggle(activeId.value!),
      f: () => {
        const job = jobs[active]
        if (job !== undefined && isBatch(job)) void toggleBatch(job.job_id)
      },
      Escape: () => {
        activeId.value = undefined
      },
    }),
  })

  if (list.isLoading.value && list.problem.value === undefined) return <Skeleton />
  return (
    <>
      <Problem error={list.problem.value} />
      <Actions selected={selected} jobs={jobs} onDone={() => void list.reload()} />
      {jobs.length === 0 ? (
        <NoJobs isFiltered={isFiltered(filter)} />
      ) : (
        <VirtualRows
          count={jobs.length}
          rowHeight={isNarrow.value ? 68 : 42}
          active={active}
          onEnd={() => void list.loadMore()}
          row={index => {
            const job = jobs[index]!
            return (
              <JobRow
                key={job.job_id}
                job={job}
                isActive={index === active}
                isSelected={selected.value.has(job.job_id)}
                onSelect={() => toggle(job.job_id)}
                isOpen={opened.has(job.job_id)}
                onFold={() => void toggleBatch(job.job_id)}
              />
            )
          }}
        />
      )}
      <p class="count" role="status">
        {jobs.length > 0 && `${jobs.length.toLocaleString()}${list.hasMore.value ? ' or more' : ''} jobs`}
      </p>
    </>
  )
}

const NoJobs = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No job matches">
      <p>
        <a href="#/jobs">Show all jobs</a>
      </p>
    </Empty>
  ) : (
    <Empty title="No jobs yet">
      <p>
        <a href="#/new">Submit one here</a>, or in a terminal:
      </p>
      <Command text="deputy run -- echo hello" />
    </Empty>
  )

const Skeleton = () => (
  <div class="skeleton" aria-hidden="true">
    {Array.from({ length: 8 }, (_, index) => (
      <div key={index} />
    ))}
  </div>
)
