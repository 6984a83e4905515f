import { AppError } from './errors.ts'
import { isId } from './ids.ts'

const MAX_JOBS_SEARCHED = 5000
const MIN_LENGTH = 6

interface IdPage {
  readonly jobs: readonly { readonly job_id: string }[]
  readonly next_cursor: string | null
}

/** Lists jobs, newest first. The daemon and its clients both implement it. */
export interface JobLister {
  list(filter: { limit: number; cursor?: string }): Promise<IdPage>
}

/** Finds a job by its id, by a unique prefix or suffix of it, or by `last`. `hint` says how to list jobs. */
export const resolveJobId = async (lister: JobLister, text: string, hint: string): Promise<string> => {
  if (isId(text.toLowerCase())) return text.toLowerCase()
  if (text === 'last') {
    const { jobs } = await lister.list({ limit: 1 })
    if (jobs[0]) return jobs[0].job_id
    throw new AppError('not_found', 'No jobs yet.', { hint })
  }
  if (!/^[0-9a-f-]+$/i.test(text)) throw new AppError('invalid', `Invalid job id '${text}'.`, { hint })
  if (text.replaceAll('-', '').length < MIN_LENGTH)
    throw new AppError('invalid', `Job id '${text}' is too short: use at least ${MIN_LENGTH} characters.`, {
      hint,
    })
  const found: string[] = []
  for await (const id of recentIds(lister)) if (matchesShortId(id, text)) found.push(id)
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw new AppError('not_found', `No job matches '${text}'.`, { hint })
  const shown = `${found.slice(0, 4).join(', ')}${found.length > 4 ? ', …' : ''}`
  throw new AppError('conflict', `'${text}' matches ${found.length} jobs: ${shown}.`, {
    hint: 'Use more characters; ids differ most at the end.',
  })
}

/** Ignores dashes, because a double click selects only one part of an id. */
export const matchesShortId = (id: string, text: string): boolean => {
  const [whole, part] = [id.replaceAll('-', ''), text.toLowerCase().replaceAll('-', '')]
  return part.length >= MIN_LENGTH && (whole.startsWith(part) || whole.endsWith(part))
}

async function* recentIds(lister: JobLister): AsyncGenerator<string> {
  let cursor: string | null = null
  for (let seen = 0; seen < MAX_JOBS_SEARCHED; ) {
    const page: IdPage = await lister.list({ limit: 100, ...(cursor !== null && { cursor }) })
    for (const job of page.jobs) yield job.job_id
    seen += page.jobs.length
    cursor = page.next_cursor
    if (cursor === null) return
  }
}
