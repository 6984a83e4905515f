import { AppError } from '../../../../jobs/errors.ts'
import type { Args, Composite, OperationName } from '../row-context.ts'
import { items, without } from './values.ts'

export const guestsOf =
  (type: 'qemu' | 'lxc'): Composite =>
  async ({ node }, { call }) => {
    const all = items(await call('GET /cluster/resources', { type: 'vm' }))
    return all.filter(guest => guest.type === type && (node === undefined || guest.node === node))
  }

export const nodeStatus: Composite = async ({ node }, { call }) => {
  const found = items(await call('GET /nodes', {})).find(one => one.node === node)
  if (found) return found
  throw new AppError('not_found', `No node '${String(node)}'.`, {
    hint: 'proxmox_node_list lists them.',
  })
}

export const storages: Composite = async ({ node }, { call }) =>
  items(await call('GET /cluster/resources', { type: 'storage' }))
    .filter(one => node === undefined || one.node === node)
    .map(one => ({
      ...one,
      type: one.plugintype,
      used: one.disk,
      total: one.maxdisk,
      avail: Number(one.maxdisk ?? 0) - Number(one.disk ?? 0),
    }))

export const aliasCreate =
  (create: Composite, defaults: Args): Composite =>
  (args, context) =>
    create({ ...defaults, ...without(args, 'transport') }, context)

/** Requires `confirm` as the original tool does. The gate asks the user in any case. */
export const confirmed =
  (operation: OperationName): Composite =>
  async (args, { call }) => {
    if (args.confirm !== true) throw new AppError('invalid', "'confirm' must be true.")
    return call(operation, without(args, 'confirm', 'transport'))
  }
