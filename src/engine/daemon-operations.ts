import { AppError } from '../jobs/errors.ts'
import type { Fleet } from '../ports.ts'
import type { Deputy } from './deputy.ts'
import { daemonView } from './job-views.ts'

/** The operations on the daemons that share a database. */
export const daemonOperations = (fleet: Fleet | undefined): Pick<Deputy, 'daemons' | 'drainDaemon'> => ({
  daemons: async () => (await fleet?.daemons())?.map(daemonView) ?? [],
  drainDaemon: async (name, draining) => {
    if (fleet === undefined)
      throw new AppError('unsupported', 'This daemon does not share its database with others.', {
        hint: 'docs/fleet.md shows how several daemons share a PostgreSQL.',
      })
    if (await fleet.drain(name, draining)) return
    const names = (await fleet.daemons()).map(daemon => daemon.name)
    throw new AppError('not_found', `No daemon '${name.slice(0, 63)}'.`, {
      hint: `The daemons are: ${names.join(', ')}.`,
    })
  },
})
