import type { Client } from '../client/daemon-client.ts'
import { AppError } from '../jobs/errors.ts'
import { matchesShortId, resolveJobId as resolve } from '../jobs/short-ids.ts'

/** A whole id, any unique start or end of one, or `last`. */
export const resolveJobId = async (client: Client, text: string | undefined): Promise<string> => {
  if (text === undefined) throw new AppError('invalid', 'No job given.', { hint: 'deputy list' })
  return resolve(client, text, 'deputy list')
}

/** The same for machines. A job id means the machine that job ran in. */
export const resolveMachineId = async (client: Client, text: string): Promise<string> => {
  const ids = (await client.machines()).map(machine => machine.machine_id)
  const found = ids.filter(id => matchesShortId(id, text))
  if (text !== 'last' && found.length === 1) return found[0]!
  const job = await client.get(await resolveJobId(client, text).catch(() => noMachine(text)))
  return job.machine_id !== null && ids.includes(job.machine_id) ? job.machine_id : noMachine(text)
}

const noMachine = (text: string): never => {
  throw new AppError('not_found', `No machine '${text}', and no job with that id kept one.`, {
    hint: 'List machines: deputy machines. Keep one: deputy run --keep -- COMMAND',
  })
}
