import { AppError } from '../jobs/errors.ts'
import { isId } from '../jobs/ids.ts'
import { STATES } from '../jobs/states.ts'
import type { ListFilter } from './deputy.ts'

/** Validates the filter of a list request and turns it into a query of the store. */
export const listQuery = (filter: ListFilter) => {
  const { status, label, parent, runtime, agent, origin, node, since, until, sort, search, cursor } = filter
  if (status !== undefined && !STATES.includes(status))
    throw new AppError('invalid', `Invalid status '${status}'.`, { hint: `One of: ${STATES.join(', ')}.` })
  if (cursor !== undefined && !isId(cursor))
    throw new AppError('invalid', `Invalid cursor '${cursor}'.`, {
      hint: 'Pass next_cursor of the previous page unchanged.',
    })
  return {
    ...(status !== undefined && { status }),
    ...(label !== undefined && { label: labelQuery(label) }),
    ...(parent !== undefined && { parentId: parent === 'none' ? null : parent }),
    ...(runtime !== undefined && { runtime }),
    ...(agent !== undefined && { agent }),
    ...(origin !== undefined && { origin }),
    ...(node !== undefined && { node }),
    ...(since !== undefined && { since: Date.parse(since) }),
    ...(until !== undefined && { until: Date.parse(until) }),
    ...(sort !== undefined && { sort }),
    ...(search !== undefined && { search }),
    ...(cursor !== undefined && { before: cursor }),
  }
}

const labelQuery = (label: string): { name: string; value?: string } => {
  const equals = label.indexOf('=')
  return equals === -1 ? { name: label } : { name: label.slice(0, equals), value: label.slice(equals + 1) }
}
