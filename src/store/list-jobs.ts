import type { Job } from '../jobs/job.ts'
import type { JobQuery } from '../ports.ts'
import { toJob } from './rows.ts'
import { all, type Value, type Work } from './sql.ts'

export function* listJobs(query: JobQuery): Work<Job[]> {
  const where: string[] = []
  const values: Value[] = []
  const add = (condition: string, ...more: Value[]): void => {
    where.push(condition)
    values.push(...more)
  }
  const { label } = query
  // A label with a value is an index range in list order, so the query starts there and needs no sort.
  const byLabel = label?.value !== undefined
  if (label?.value !== undefined) add('l.name = ? and l.value = ?', label.name, label.value)
  else if (label !== undefined) add('j.seq in (select seq from labels where name = ?)', label.name)
  if (query.status !== undefined) add('j.state = ?', query.status)
  if (query.parentId === null) add('j.parent_id is null')
  else if (query.parentId !== undefined) add('j.parent_id = ?', query.parentId)
  if (query.agent !== undefined) add('j.agent_type = ?', query.agent)
  if (query.origin !== undefined) add('substr(j.origin, 1, length(?)) = ?', query.origin, query.origin)
  if (query.node !== undefined) add('j.node = ?', query.node)
  if (query.since !== undefined) add('j.created_at >= ?', query.since)
  if (query.until !== undefined) add('j.created_at < ?', query.until)
  if (query.runtime !== undefined) add('j.runtime = ?', query.runtime)
  if (query.search !== undefined) {
    const { search } = query
    add(
      '(instr(lower(j.title), lower(?)) > 0 or substr(j.id, 1, length(?)) = lower(?))',
      search,
      search,
      search,
    )
  }
  const seq = byLabel ? 'l.seq' : 'j.seq'
  const order = ORDERS[query.sort ?? 'newest']
  if (query.before !== undefined) add(order.after(seq), query.before)
  // In SQLite a cross join keeps the order of the tables.
  if (byLabel) where.push('j.seq = l.seq')
  const from = byLabel ? 'labels l cross join jobs j' : 'jobs j'
  const filter = where.length > 0 ? `where ${where.join(' and ')}` : ''
  const sql = `select j.* from ${from} ${filter} order by ${order.by(seq)} limit ?`
  return (yield all(sql, ...values, query.limit)).rows.map(toJob)
}

/** How long a job has run; one that never started comes last. */
const durationOf = (job: string): string =>
  `case when ${job}.started_at is null then -1
   else coalesce(${job}.completed_at, unixepoch() * 1000) - ${job}.started_at end`

/** Each order, and the condition for the jobs that follow a given one. */
const ORDERS = {
  newest: {
    by: (seq: string) => `${seq} desc`,
    after: (seq: string) => `${seq} < (select b.seq from jobs b where b.id = ?)`,
  },
  oldest: {
    by: (seq: string) => `${seq} asc`,
    after: (seq: string) => `${seq} > (select b.seq from jobs b where b.id = ?)`,
  },
  longest: {
    by: (seq: string) => `${durationOf('j')} desc, ${seq} desc`,
    after: (seq: string) =>
      `(${durationOf('j')}, ${seq}) < (select ${durationOf('b')}, b.seq from jobs b where b.id = ?)`,
  },
} as const
