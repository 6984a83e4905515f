import type { Client } from '../../client/daemon-client.ts'
import type { JobPage, JobSummary, ListFilter } from '../../engine/deputy.ts'
import { type JobState, STATES } from '../../jobs/states.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Colors } from '../terminal/colors.ts'
import { age, duration, shortId, statusColor, statusMark } from '../terminal/format.ts'
import type { Column } from '../terminal/table.ts'

export default defineCommand({
  usage: '[flags]',
  flags: {
    status: { type: 'string', value: 'STATE', choices: STATES, summary: `Only ${STATES.join(', ')}` },
    label: { type: 'string', short: 'l', value: 'K[=V]', summary: 'Only jobs with this label' },
    limit: { type: 'number', short: 'n', value: 'N', summary: 'How many (default 20)' },
    cursor: { type: 'string', value: 'TEXT', summary: 'Start after this cursor' },
    json: JSON_FLAG,
  },
  async run(context, { flags }) {
    const client = await context.client()
    const page = await listJobs(client, flags.limit ?? 20, {
      ...(flags.status !== undefined && { status: flags.status as JobState }),
      ...(flags.label !== undefined && { label: flags.label }),
      ...(flags.cursor !== undefined && { cursor: flags.cursor }),
    })
    if (flags.json) return context.printJson(page)
    if (page.jobs.length === 0) {
      await context.err.write('No jobs found. Start one: deputy run -- echo hello\n')
      return 0
    }
    await context.printTable(page.jobs, columns(context.colors))
    if (page.next_cursor !== null && context.out.isTTY)
      await context.err.write(context.errColors.dim(`more: deputy list --cursor ${page.next_cursor}\n`))
    return 0
  },
})

/** Reads as many pages as needed. */
const listJobs = async (client: Client, limit: number, filter: ListFilter): Promise<JobPage> => {
  const jobs: JobSummary[] = []
  let cursor = filter.cursor
  for (;;) {
    const size = Math.min(PAGE, limit - jobs.length)
    const page = await client.list({ ...filter, limit: size, ...(cursor !== undefined && { cursor }) })
    jobs.push(...page.jobs)
    if (page.next_cursor === null || jobs.length >= limit) return { jobs, next_cursor: page.next_cursor }
    cursor = page.next_cursor
  }
}

const PAGE = 100

const columns = (colors: Colors): Column<JobSummary>[] => [
  { title: 'ID', value: job => shortId(job.job_id) },
  {
    title: 'STATUS',
    value: job => `${statusMark(job.status)} ${job.status}`,
    paint: (text, job) => statusColor(job.status, colors)(text),
  },
  { title: 'EXIT', value: job => (job.exit_code === null ? '–' : String(job.exit_code)), align: 'right' },
  { title: 'AGE', value: job => age(job.created_at), align: 'right' },
  { title: 'TIME', value: job => duration(job.duration_seconds), align: 'right' },
  { title: 'RUNTIME', value: job => job.runtime },
  { title: 'TASK', value: job => job.task.replace(/\s+/g, ' ').trim(), rest: true },
]
