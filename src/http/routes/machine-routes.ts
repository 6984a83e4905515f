import { AppError } from '../../jobs/errors.ts'
import { isId } from '../../jobs/ids.ts'
import type { ControlDeps } from '../deps.ts'
import { json, noContent } from '../respond.ts'
import { type Route, route } from '../route.ts'
import { machineListSchema } from '../views.ts'

export const machineRoutes = ({ deputy }: ControlDeps): Route[] => [
  route({
    method: 'GET',
    path: '/api/machines',
    tag: 'machines',
    summary: 'List the machines',
    responses: { 200: { description: 'The machines', schema: machineListSchema } },
    handle: async () => json({ machines: await deputy.machines() }),
  }),

  route({
    method: 'DELETE',
    path: '/api/machines/{id}',
    tag: 'machines',
    summary: 'Destroy a machine; answers when it is confirmed gone',
    responses: { 204: { description: 'The machine is gone' } },
    handle: async ({ params: { id = '' } }) => {
      if (!isId(id))
        throw new AppError('not_found', `No machine '${id.slice(0, 60)}': a machine id is a UUID.`, {
          hint: 'GET /api/machines lists all machines.',
        })
      await deputy.destroyMachine(id)
      return noContent()
    },
  }),
]
