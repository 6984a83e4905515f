import type { Client } from '../control/client.ts'
import { AppError } from '../jobs/errors.ts'
import { isId } from '../jobs/ids.ts'

/** How many of the latest jobs are searched for a shortened id. */
const LOOK_BACK = 5000
const SHORTEST = 6

/** A whole id, any unique beginning or end of one, or `last`. */
export const resolveJobId = async (client: Client, text: string | undefined): Promise<string> => {
  if (text === undefined) throw new AppError('invalid', 'No job given.', { hint: 'deputy list' })
  if (isId(text.toLowerCase())) return text.toLowerCase()
  if (text === 'last') return latest(client)
  return pick(text, recentIds(client))
}

/** The same for machines. A job id means the machine that job ran in. */
export const resolveMachineId = async (client: Client, text: string): Promise<string> => {
  const ids = (await client.machines()).map(machine => machine.machine_id)
  if (text !== 'last') {
    const found = ids.filter(id => fits(id, text))
    if (found.length === 1 && text.length >= SHORTEST) return found[0]!
  }
  const job = await client.get(await resolveJobId(client, text).catch(() => noMachine(text)))
  return job.machine_id !== null && ids.includes(job.machine_id) ? job.machine_id : noMachine(text)
}

const noMachine = (text: string): never => {
  throw new AppError('not_found', `No machine '${text}', and no job with that id kept one.`, {
    hint: 'List machines: deputy machines. Keep one: deputy run --keep -- COMMAND',
  })
}

const latest = async (client: Client): Promise<string> => {
  const { jobs } = await client.list({ limit: 1 })
  if (jobs[0]) return jobs[0].job_id
  throw new AppError('not_found', 'No jobs yet.', { hint: 'deputy run -- echo hello' })
}

async function* recentIds(client: Client): AsyncGenerator<string> {
  let cursor: string | null = null
  for (let seen = 0; seen < LOOK_BACK; ) {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      limit: 100,
      ...(cursor !== null && { cursor }),
    })
    for (const job of page.jobs) yield job.job_id
    seen += page.jobs.length
    cursor = page.next_cursor
    if (cursor === null) return
  }
}

const pick = async (text: string, ids: AsyncIterable<string>): Promise<string> => {
  const hint = 'deputy list'
  if (!/^[0-9a-f-]+$/i.test(text)) throw new AppError('invalid', `Invalid job id '${text}'.`, { hint })
  if (text.replaceAll('-', '').length < SHORTEST)
    throw new AppError('invalid', `Job id '${text}' is too short: use at least ${SHORTEST} characters.`, {
      hint,
    })
  const found: string[] = []
  for await (const id of ids) if (fits(id, text)) found.push(id)
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw new AppError('not_found', `No job matches '${text}'.`, { hint })
  const shown = `${found.slice(0, 4).join(', ')}${found.length > 4 ? ', …' : ''}`
  throw new AppError('conflict', `'${text}' matches ${found.length} jobs: ${shown}.`, {
    hint: 'Use more characters; ids differ most at the end.',
  })
}

/** Dashes do not count: a double click takes only a part of an id. */
const fits = (id: string, text: string): boolean => {
  const [whole, part] = [id.replaceAll('-', ''), text.toLowerCase().replaceAll('-', '')]
  return whole.startsWith(part) || whole.endsWith(part)
}
