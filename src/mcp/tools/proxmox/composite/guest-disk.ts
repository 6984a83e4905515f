import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../row-context.ts'
import { gibibytes, item, propValue, text, without } from './values.ts'

/** `scsi1=local-lvm:32` allocates 32 GiB; Proxmox accepts no unit there. */
export const addDisk: Composite = async (args, { call }) => {
  const disk = String(args.disk)
  if (!/^(ide[0-3]|sata[0-5]|scsi([12]?\d|30)|virtio(\d|1[0-5]))$/.test(disk)) {
    throw new AppError('invalid', `Invalid disk '${disk}'.`, {
      hint: 'ide0-3, sata0-5, scsi0-30 or virtio0-15.',
    })
  }
  await refuseTaken(args, call, 'qemu', disk)
  const options = args.options === undefined ? '' : `,${String(args.options)}`
  const value = `${String(args.storage)}:${gibibytes(String(args.size))}${options}`
  return call('POST /nodes/{node}/qemu/{vmid}/config', { node: args.node, vmid: args.vmid, [disk]: value })
}

export const removeDisk: Composite = async (args, { call }) => {
  const { node, vmid, disk, force } = args
  await call('PUT /nodes/{node}/qemu/{vmid}/unlink', without({ node, vmid, idlist: disk, force }))
  return { ok: true, volume: force === true ? 'deleted' : 'kept as unusedN' }
}

export const addMountpoint: Composite = async (args, { call }) => {
  const mp = String(args.mp)
  await refuseTaken(args, call, 'lxc', mp)
  const flags = `${args.backup === true ? ',backup=1' : ''}${args.ro === true ? ',ro=1' : ''}`
  const value = `${String(args.storage)}:${gibibytes(String(args.size))},mp=${propValue('path', String(args.path))}${flags}`
  await call('PUT /nodes/{node}/lxc/{vmid}/config', { node: args.node, vmid: args.vmid, [mp]: value })
  return { ok: true, [mp]: value }
}

export const removeMountpoint: Composite = ({ node, vmid, mp }, { call }) =>
  call('PUT /nodes/{node}/lxc/{vmid}/config', { node, vmid, delete: mp })

/** VMs and containers have different requests for this. */
export const moveDisk: Composite = (args, { call }) => {
  const { node, vmid, type, disk, storage, format, bwlimit } = args
  const remove = args.delete ?? true
  if (type !== 'lxc') {
    return call(
      'POST /nodes/{node}/qemu/{vmid}/move_disk',
      without({ node, vmid, disk, storage, format, bwlimit, delete: remove }),
    )
  }
  if (format !== undefined) throw new AppError('invalid', "'format' is for VMs only.")
  return call(
    'POST /nodes/{node}/lxc/{vmid}/move_volume',
    without({ node, vmid, volume: disk, storage, bwlimit, delete: remove }),
  )
}

/** Refuses a disk that exists: setting it again would silently detach the old one. */
const refuseTaken = async (
  args: Parameters<Composite>[0],
  call: Parameters<Composite>[1]['call'],
  type: 'qemu' | 'lxc',
  key: string,
) => {
  const config = item(
    await call('GET /nodes/{node}/{type}/{vmid}/config', { node: args.node, type, vmid: args.vmid }),
  )
  const present = text(config, key)
  if (present === undefined) return
  throw new AppError('conflict', `${key} of guest ${String(args.vmid)} is in use: ${present}.`, {
    hint: 'Choose a free one, or remove it first.',
  })
}
