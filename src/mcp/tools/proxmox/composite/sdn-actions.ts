import { AppError } from '../../../../jobs/errors.ts'
import type { Args, Composite, RowContext } from '../row-context.ts'
import { item, items, text, without } from './values.ts'

/** Subnets belong to a vnet. To list all of them, one request per vnet is needed. */
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
    throw new AppError('invalid', `Invalid CIDR '${String(args.subnet)}'.`, { hint: 'e.g. 10.0.0.0/24' })
  return call('POST /cluster/sdn/vnets/{vnet}/subnets', { ...args, type: 'subnet' })
}

/** The API identifies a subnet by its vnet and `zone-10.0.0.0-24`; users write 10.0.0.0/24. */
export const subnet =
  (method: 'GET' | 'PUT' | 'DELETE'): Composite =>
  async (args, context) =>
    context.call(`${method} /cluster/sdn/vnets/{vnet}/subnets/{subnet}`, {
      ...args,
      ...(args.vnet === undefined ? await find(args, context) : { subnet: await idOf(args, context) }),
    })

/** Searches all vnets. If several subnets match, the caller must choose the vnet. */
const find = async ({ subnet: name }: Args, context: RowContext): Promise<Args> => {
  const all = items(await listSubnets({}, context))
  const fits = all.filter(one => text(one, 'subnet') === name || text(one, 'cidr') === name)
  const [only] = fits
  if (only && fits.length === 1) return { vnet: only.vnet, subnet: only.subnet }
  const hint =
    fits.length > 1
      ? `Say which vnet: ${fits.map(one => text(one, 'vnet')).join(', ')}.`
      : 'proxmox_sdn_subnet list lists them.'
  throw new AppError(
    fits.length > 1 ? 'invalid' : 'not_found',
    fits.length > 1 ? `${fits.length} subnets match '${String(name)}'.` : `No subnet '${String(name)}'.`,
    { hint },
  )
}

const idOf = async ({ vnet, subnet: name }: Args, { call }: RowContext): Promise<string> => {
  const given = String(name)
  if (!given.includes('/')) return given
  const zone = text(item(await call('GET /cluster/sdn/vnets/{vnet}', { vnet })), 'zone')
  return `${zone}-${given.replace('/', '-')}`
}
