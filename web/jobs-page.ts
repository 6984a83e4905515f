import { askJson, follow } from './api.ts'
import { h, show } from './dom.ts'
import { seconds, time } from './format.ts'
import type { Page } from './main.ts'
import { badge, failure } from './parts.ts'
import { submitForm } from './submit-form.ts'
import { type JobPage, STATES, type Summary } from './views.ts'

const REFRESH_MS = 400

/** All jobs, newest first. It looks again when something happens to any of them. */
export const jobsPage: Page = (place, signal) => {
  const status = h(
    'select',
    { 'aria-label': 'Status', on: { change: () => void load() } },
    h('option', { value: '' }, 'all'),
    ...STATES.map(state => h('option', {}, state)),
  )
  const label = h('input', {
    placeholder: 'label or label=value',
    'aria-label': 'Label',
    on: { change: () => void load() },
  })
  const rows = h('tbody')
  const more = h('div')
  const problem = h('div')

  const pageOf = (cursor?: string): Promise<JobPage> => {
    const query = new URLSearchParams({ limit: '50' })
    if (status.value !== '') query.set('status', status.value)
    if (label.value.trim() !== '') query.set('label', label.value.trim())
    if (cursor !== undefined) query.set('cursor', cursor)
    return askJson<JobPage>(`/api/jobs?${query}`, { signal })
  }
  const offerMore = (cursor: string | null): void =>
    show(more, cursor !== null && h('button', { on: { click: () => void loadMore(cursor) } }, 'Show more'))
  const guarded = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
      show(problem)
    } catch (error) {
      if (!signal.aborted) show(problem, failure(error))
    }
  }
  const load = () =>
    guarded(async () => {
      const { jobs, next_cursor } = await pageOf()
      show(rows, ...(jobs.length > 0 ? jobs.map(row) : [h('tr', {}, h('td', { colspan: '6' }, 'No jobs.'))]))
      offerMore(next_cursor)
    })
  const loadMore = (cursor: string) =>
    guarded(async () => {
      const { jobs, next_cursor } = await pageOf(cursor)
      rows.append(...jobs.map(row))
      offerMore(next_cursor)
    })

  show(
    place,
    submitForm(signal),
    h('div', { class: 'bar' }, h('label', {}, 'Status ', status), label),
    problem,
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...['Status', 'Task', 'Runtime', 'Created', 'Took', 'Exit'].map(text => h('th', {}, text)),
        ),
      ),
      rows,
    ),
    more,
  )
  void load()
  void watchAll(signal, load)
}

/** Many events in a short time are one reason to look again. */
const watchAll = async (signal: AbortSignal, look: () => Promise<void>): Promise<void> => {
  let planned = false
  const lookSoon = (): void => {
    if (planned) return
    planned = true
    setTimeout(() => {
      planned = false
      dispatchEvent(new Event('jobs-changed'))
      if (!signal.aborted) void look()
    }, REFRESH_MS)
  }
  for await (const { event } of follow('/api/events/stream', signal))
    if (event === 'submitted' || event === 'state') lookSoon()
}

/** Labels that Deputy itself puts on jobs: of use to it alone. */
const OURS = 'deputy/'

const row = (job: Summary): HTMLElement =>
  h(
    'tr',
    {},
    h('td', {}, badge(job.status)),
    h(
      'td',
      { class: 'task' },
      h('a', { href: `#/jobs/${job.job_id}` }, job.task || job.job_id),
      ...Object.entries(job.labels ?? {})
        .filter(([name]) => !name.startsWith(OURS))
        .map(([name, value]) => h('span', { class: 'label' }, `${name}=${value}`)),
    ),
    h('td', {}, job.runtime),
    h('td', {}, time(job.created_at)),
    h('td', {}, seconds(job.duration_seconds)),
    h('td', {}, job.exit_code),
  )
