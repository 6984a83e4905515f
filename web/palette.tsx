import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JobSummary } from '../src/engine/deputy.ts'
import { deputy } from './deputy.ts'
import { Badge, Problem } from './parts.tsx'
import { go, type Place, place } from './router.ts'
import { runAgain } from './run-again.ts'

interface Entry {
  readonly title: string
  readonly job?: JobSummary
  run(): Promise<void> | void
}

const PAUSE_MS = 100
const JOBS = 8

/** The command palette: finds pages, actions on the current job, and jobs by name. */
export const Palette = ({ onClose }: { onClose: () => void }) => {
  const text = useSignal('')
  const jobs = useSignal<readonly JobSummary[]>([])
  const selected = useSignal(0)
  const problem = useSignal<unknown>(undefined)
  useEffect(() => {
    const stop = new AbortController()
    const timer = setTimeout(() => {
      findJobs(text.value, stop.signal).then(
        found => {
          jobs.value = found
        },
        error => {
          if (!stop.signal.aborted) problem.value = error
        },
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text.value])

  const entries = [
    ...commandsOf(place.value).filter(({ title }) => title.toLowerCase().includes(text.value.toLowerCase())),
    ...jobs.value.map(jobEntry),
  ]
  const at = Math.min(selected.value, entries.length - 1)
  const choose = async (entry: Entry | undefined): Promise<void> => {
    try {
      await entry?.run()
      onClose()
    } catch (error) {
      problem.value = error
    }
  }
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined && event.key !== 'Enter') return
    event.preventDefault()
    if (step === undefined) void choose(entries[at])
    else selected.value = (at + step + entries.length) % Math.max(1, entries.length)
  }
  return (
    <div class="palette">
      <input
        type="text"
        role="combobox"
        aria-label="Go to a page or a job"
        aria-expanded="true"
        aria-controls="palette-entries"
        aria-activedescendant={at < 0 ? undefined : `palette-${at}`}
        placeholder="A page, an action, or a job"
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value
          selected.value = 0
        }}
        onKeyDown={press}
      />
      <Problem error={problem.value} />
      <div id="palette-entries" role="listbox" aria-label="Found">
        {entries.map((entry, index) => (
          <button
            type="button"
            tabIndex={-1}
            key={entry.job?.job_id ?? entry.title}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => void choose(entry)}
          >
            <span>{entry.title}</span>
            {entry.job && <Badge status={entry.job.status} />}
          </button>
        ))}
      </div>
      {entries.length === 0 && <p class="soft">No matches.</p>}
    </div>
  )
}

const findJobs = async (search: string, signal: AbortSignal): Promise<readonly JobSummary[]> =>
  (await deputy.list({ limit: JOBS, ...(search !== '' && { search }) }, signal)).jobs

const jobEntry = (job: JobSummary): Entry => ({
  title: job.task,
  job,
  run: () => go(`#/jobs/${job.job_id}`),
})

const commandsOf = ({ path: [page, id] }: Place): readonly Entry[] => [
  ...(page === 'jobs' && id !== undefined ? jobCommands(id) : []),
  { title: 'Overview', run: () => go('#/') },
  { title: 'Jobs', run: () => go('#/jobs') },
  { title: 'Failed jobs', run: () => go('#/jobs?status=failed') },
  { title: 'Running jobs', run: () => go('#/jobs?status=running') },
  { title: 'New job', run: () => go('#/new') },
  { title: 'System', run: () => go('#/system') },
]

const jobCommands = (id: string): readonly Entry[] => [
  { title: 'Run this job again', run: async () => go(`#/jobs/${(await runAgain(id)).job_id}`) },
  { title: 'Edit this job and run it', run: () => go(`#/new?from=${id}`) },
  {
    title: 'Cancel this job',
    run: async () => void (await deputy.cancel(id)),
  },
]
