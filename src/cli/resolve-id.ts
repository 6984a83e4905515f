import type { Client } from '../control/client.ts'
import { AppError } from '../jobs/errors.ts'
import { isId } from '../jobs/ids.ts'

/** Shortened ids are looked for among so many of the latest jobs. */
const LOOK_BACK = 5000
const SHORTEST = 6

/** A whole id, any unique beginning or end of one, or `last`. */
export const resolveJobId = async (client: Client, text: string | undefined): Promise<string> => {
  if (text === undefined) throw new AppError('invalid', 'Which job? Give its id.', { hint: 'deputy list' })
  if (isId(text.toLowerCase())) return text.toLowerCase()
  if (text === 'last') return latest(client)
  return pick(text, recentIds(client), 'job')
}

/** The same for machines; the id of a job stands for the machine it left. */
export const resolveMachineId = async (client: Client, text: string): Promise<string> => {
  const machines = await client.machines()
  if (text === 'last' && machines.length > 0)
    return machines.reduce((a, b) => (a.created_at > b.created_at ? a : b)).machine_id
  const byJob = machines.find(machine => machine.job_id === text.toLowerCase())
  if (byJob) return byJob.machine_id
  const exact = machines.find(machine => machine.machine_id === text.toLowerCase())
  if (exact) return exact.machine_id
  const ids = async function* () {
    for (const machine of machines) yield machine.machine_id
  }
  try {
    return await pick(text, ids(), 'machine')
  } catch (error) {
    const jobs = machines.filter(machine => machine.job_id !== null && fits(machine.job_id, text))
    if (text.length >= SHORTEST && jobs.length === 1) return jobs[0]!.machine_id
    throw error
  }
}

const latest = async (client: Client): Promise<string> => {
  const { jobs } = await client.list({ limit: 1 })
  if (jobs[0]) return jobs[0].job_id
  throw new AppError('not_found', 'There is no job yet.', { hint: 'deputy run -- echo hello' })
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

const pick = async (text: string, ids: AsyncIterable<string>, what: string): Promise<string> => {
  const hint = what === 'job' ? 'deputy list' : 'deputy machines'
  if (!/^[0-9a-f-]+$/i.test(text)) throw new AppError('invalid', `'${text}' is no ${what} id.`, { hint })
  if (text.replaceAll('-', '').length < SHORTEST)
    throw new AppError('invalid', `'${text}' is too short: give at least ${SHORTEST} characters of the id.`, {
      hint,
    })
  const found: string[] = []
  for await (const id of ids) if (fits(id, text)) found.push(id)
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw new AppError('not_found', `No ${what} has an id like '${text}'.`, { hint })
  throw new AppError(
    'conflict',
    `'${text}' fits ${found.length} ${what}s: ${found.slice(0, 4).join(', ')}${found.length > 4 ? ', …' : ''}.`,
    { hint: 'Give more characters; ids differ most at their end.' },
  )
}

/** Dashes do not count: a double click takes only a part of an id. */
const fits = (id: string, text: string): boolean => {
  const [whole, part] = [id.replaceAll('-', ''), text.toLowerCase().replaceAll('-', '')]
  return whole.startsWith(part) || whole.endsWith(part)
}
