import { batch, signal } from '@preact/signals'
import type { JobPage, JobSummary, ListFilter } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'
import { requestOf } from './filters.tsx'

/** The query parameters of the list request, and `age`. */
export type Filter = Readonly<Record<string, string | undefined>>

const FIRST_PAGE = 100
const PAGE = 1000
const REFRESH_MS = 300
/** More changed jobs than this below the first page: read all of the list again. */
const SINGLE_READS = 20

/** Jobs that match a filter: read page by page as they are looked at, and kept up to date. */
export const createJobList = (filter: Filter, stop: AbortSignal) => {
  const jobs = signal<readonly JobSummary[]>([])
  const hasMore = signal(false)
  const isLoading = signal(true)
  const problem = signal<unknown>(undefined)
  const request = requestOf(filter, Date.now())
  let cursor: string | null = null
  let busy: Promise<void> = Promise.resolve()

  const read = (limit: number, from?: string): Promise<JobPage> =>
    // What the address says may be anything; the daemon refuses what it does not know.
    deputy.list({ ...(request as ListFilter), limit, ...(from && { cursor: from }) }, stop)
  const show = (shown: readonly JobSummary[], next: string | null): void =>
    batch(() => {
      cursor = next
      jobs.value = shown
      hasMore.value = next !== null
      isLoading.value = false
      problem.value = undefined
    })
  /** One read at a time: pages must follow each other. */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    busy = busy.then(work).catch(error => {
      if (!stop.aborted) problem.value = error
    })
    return busy
  }

  const reload = () =>
    inTurn(async () => {
      const page = await read(FIRST_PAGE)
      show(page.jobs, page.next_cursor)
    })
  const loadMore = () =>
    inTurn(async () => {
      if (cursor === null) return
      const page = await read(PAGE, cursor)
      show([...jobs.value, ...page.jobs], page.next_cursor)
    })
  const refresh = (changed: ReadonlySet<string>) =>
    inTurn(async () => {
      // In another order, a change may move any job: only a list of one page stays live.
      if (filter.sort !== undefined && jobs.value.length > FIRST_PAGE) return
      const page = await read(FIRST_PAGE)
      if (filter.sort !== undefined) return show(page.jobs, page.next_cursor)
      const merged = mergeFirstPage(jobs.value, page)
      const top = new Set(page.jobs.map(job => job.job_id))
      const below = merged.filter(job => changed.has(job.job_id) && !top.has(job.job_id))
      if (below.length > SINGLE_READS) return show(page.jobs, page.next_cursor)
      const fresh = new Map<string, JobSummary | undefined>()
      for (const { job_id } of below) fresh.set(job_id, await deputy.get(job_id, stop).catch(() => undefined))
      const kept = merged.flatMap(job => (fresh.has(job.job_id) ? (fresh.get(job.job_id) ?? []) : job))
      show(
        kept.filter(job => filter.status === undefined || job.status === filter.status),
        merged.length === page.jobs.length ? page.next_cursor : cursor,
      )
    })

  void reload()
  void watch(stop, refresh).catch(error => {
    if (!stop.aborted) problem.value = error
  })
  return { jobs, hasMore, isLoading, problem, loadMore, reload }
}

/** The newest jobs anew, and below them what was read before. */
const mergeFirstPage = (known: readonly JobSummary[], page: JobPage): JobSummary[] => {
  const last = page.jobs.at(-1)
  if (last === undefined || page.next_cursor === null) return [...page.jobs]
  const place = known.findIndex(job => job.job_id === last.job_id)
  return [...page.jobs, ...(place === -1 ? [] : known.slice(place + 1))]
}

/** Many events in a short time are one reason to look again. */
const watch = async (stop: AbortSignal, refresh: (changed: ReadonlySet<string>) => void): Promise<void> => {
  let changed = new Set<string>()
  for await (const { type, jobId } of deputy.followEvents({ signal: stop })) {
    if (type !== 'submitted' && type !== 'state') continue
    if (changed.size === 0)
      setTimeout(() => {
        const ids = changed
        changed = new Set()
        if (!stop.aborted) refresh(ids)
      }, REFRESH_MS)
    changed.add(jobId)
  }
}
