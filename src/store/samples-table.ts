import { quantiles, SAMPLE_MS, type Sample } from '../jobs/sample.ts'
import { TERMINAL_STATES } from '../jobs/states.ts'
import { oneOf } from './rows.ts'
import { all, run, type Work } from './sql.ts'

/** More jobs than this in a minute do not change its quantiles. */
const MEASURED_JOBS = 20_000

/** Measures the minute that starts at `at`. */
export function* measureMinute(at: number): Work<Sample> {
  const ended = { success: 0, failed: 0, timeout: 0, cancelled: 0 }
  const waits: number[] = []
  const durations: number[] = []
  const { rows: measured } = yield all(
    `select state, created_at, started_at, completed_at from jobs
     where completed_at >= ? and completed_at < ? limit ${MEASURED_JOBS}`,
    at,
    at + SAMPLE_MS,
  )
  for (const row of measured) {
    ended[oneOf(TERMINAL_STATES, row.state)] += 1
    if (row.started_at === null) continue
    waits.push(Math.max(0, Number(row.started_at) - Number(row.created_at)))
    durations.push(Math.max(0, Number(row.completed_at) - Number(row.started_at)))
  }
  const slots: Record<string, number> = {}
  let pending = 0
  const { rows: unfinished } = yield all(
    'select runtime, state, count(*) as count from jobs where completed_at is null group by runtime, state',
  )
  for (const row of unfinished)
    if (row.state === 'pending') pending += Number(row.count)
    else slots[String(row.runtime)] = (slots[String(row.runtime)] ?? 0) + Number(row.count)
  return { at, ended, wait: quantiles(waits), duration: quantiles(durations), slots, pending }
}

export function* saveSample(sample: Sample, keepFrom: number): Work<void> {
  yield run(
    'insert into samples (at, body) values (?, ?) on conflict (at) do update set body = excluded.body',
    sample.at,
    JSON.stringify(sample),
  )
  yield run('delete from samples where at < ?', keepFrom)
}

export function* readSamples(since: number): Work<Sample[]> {
  const { rows } = yield all('select body from samples where at >= ? order by at', since)
  return rows.map(row => JSON.parse(String(row.body)) as Sample)
}
