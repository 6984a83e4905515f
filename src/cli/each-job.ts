import type { Client } from '../client/daemon-client.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'
import { reportError } from './report-error.ts'
import { resolveJobId } from './resolve-id.ts'

/** Applies an action to several jobs. A failure does not stop the others; it sets the exit status. */
export const eachJob = async <T>(
  context: Context,
  ids: readonly string[],
  options: { json: boolean; act: (client: Client, id: string) => Promise<T>; say: (done: T) => string },
): Promise<number> => {
  if (ids.length === 0) throw new AppError('invalid', 'No job given.', { hint: 'deputy list' })
  const client = await context.client()
  const done: T[] = []
  let status = 0
  for (const text of ids)
    try {
      const result = await options.act(client, await resolveJobId(client, text))
      done.push(result)
      if (!options.json) await context.print(`${options.say(result)}\n`)
    } catch (error) {
      status = reportError(context, error)
    }
  if (options.json) await context.printJson(done)
  return status
}
