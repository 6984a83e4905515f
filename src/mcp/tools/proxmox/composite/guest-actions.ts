import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../row-context.ts'
import { items, text, without } from './values.ts'

/** Lists the guests of all nodes with one request. */
export const listGuests: Composite = async ({ node, type }, { call }) => {
  const all = items(await call('GET /cluster/resources', { type: 'vm' }))
  return all.filter(
    guest =>
      (node === undefined || guest.node === node) &&
      (type === undefined || type === 'all' || guest.type === type),
  )
}

/** VMs have a name, containers a hostname; both arguments are accepted for both. */
export const cloneGuest: Composite = (args, { call }) => {
  const name = args.name ?? args.hostname
  const rest = without(args, 'name', 'hostname')
  if (args.type !== 'lxc') return call('POST /nodes/{node}/{type}/{vmid}/clone', { ...rest, name })
  if (args.format !== undefined) throw new AppError('invalid', "'format' is for VMs only.")
  return call('POST /nodes/{node}/{type}/{vmid}/clone', { ...rest, hostname: name })
}

/** A running container is stopped and restarted on the target node. */
export const migrate: Composite = (args, { call }) => {
  const { 'with-local-storage': storage, 'with-local-disks': disks, online, force, ...rest } = args
  if (args.type === 'lxc') {
    const moved = { ...rest, restart: online, 'target-storage': storage }
    return call('POST /nodes/{node}/{type}/{vmid}/migrate', without(moved))
  }
  const moved = {
    ...rest,
    online,
    force,
    'with-local-disks': disks ?? (storage === undefined ? undefined : true),
    targetstorage: storage,
  }
  return call('POST /nodes/{node}/{type}/{vmid}/migrate', without(moved))
}

export const updateConfig: Composite = (args, { call }) => {
  const changes = without(args, 'node', 'type', 'vmid', 'digest')
  if (Object.keys(changes).length === 0) {
    throw new AppError('invalid', 'Nothing to change: no setting was given.')
  }
  const sshkeys = text(args, 'sshkeys')
  // Proxmox expects this value URL-encoded; the request encodes it once more.
  const keys =
    sshkeys !== undefined && /\s/.test(sshkeys.trim()) ? { sshkeys: encodeURIComponent(sshkeys) } : {}
  return call('PUT /nodes/{node}/{type}/{vmid}/config', { ...args, ...keys })
}
