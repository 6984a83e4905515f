import { AppError } from '../../../../jobs/errors.ts'
import type { Args, Composite, RowContext } from '../context.ts'
import { item, items, text, without } from './values.ts'

/** Subnets live under their vnet; all of them are one request for each vnet. */
export const listSubnets: Composite = async ({ vnet, pending }, { call }) => {
  const names =
    vnet === undefined
      ? items(await call('GET /cluster/sdn/vnets', {})).map(one => text(one, 'vnet')!)
      : [String(vnet)]
  const lists = await Promise.all(
    names.map(name => call('GET /cluster/sdn/vnets/{vnet}/subnets', without({ vnet: name, pending }))),
  )
  return lists.flatMap(items)
}

export const createSubnet: Composite = (args, { call }) => {
  if (!String(args.subnet).includes('/'))
    throw new AppError('invalid', `'${String(args.subnet)}' is no CIDR.`, { hint: 'e.g. 10.0.0.0/24' })
  return call('POST /cluster/sdn/vnets/{vnet}/subnets', { ...args, type: 'subnet' })
}

/** A subnet is addressed as `zone-10.0.0.0-24`; people know it as 10.0.0.0/24. */
export const subnet =
  (method: 'GET' | 'PUT' | 'DELETE'): Composite =>
  async (args, context) =>
    context.call(`${method} /cluster/sdn/vnets/{vnet}/subnets/{subnet}`, {
      ...args,
      subnet: await idOf(args, context),
    })

const idOf = async ({ vnet, subnet: name }: Args, { call }: RowContext): Promise<string> => {
  const given = String(name)
  if (!given.includes('/')) return given
  const zone = text(item(await call('GET /cluster/sdn/vnets/{vnet}', { vnet })), 'zone')
  return `${zone}-${given.replace('/', '-')}`
}
