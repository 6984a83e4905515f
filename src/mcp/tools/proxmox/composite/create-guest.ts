import { randomBytes } from 'node:crypto'
import type { Args, Composite, RowContext } from '../row-context.ts'
import { gibibytes, text, without } from './values.ts'

/** Creates a VM with the minimum that boots; arguments override the defaults. */
export const createVm: Composite = async (args, context) => {
  const { disk_size: size, storage, iso, agent, ...rest } = args
  const disk = `${text(args, 'storage') ?? 'local-lvm'}:${gibibytes(text(args, 'disk_size') ?? '8G')}`
  return context.call('POST /nodes/{node}/qemu', {
    memory: 512,
    cores: 1,
    sockets: 1,
    ostype: 'l26',
    scsihw: 'virtio-scsi-single',
    net0: 'virtio,bridge=vmbr0',
    scsi0: disk,
    boot: iso === undefined ? 'order=scsi0' : 'order=scsi0;ide2',
    ...(iso === undefined ? {} : { ide2: `${String(iso)},media=cdrom` }),
    ...(agent === undefined ? {} : { agent: agent === true ? '1' : '0' }),
    ...without(rest),
    vmid: await freeId(args, context),
  })
}

export const createLxc: Composite = async (args, context) => {
  const { rootfs, storage, ...rest } = args
  const vmid = await freeId(args, context)
  return context.call('POST /nodes/{node}/lxc', {
    memory: 512,
    unprivileged: true,
    rootfs: `${text(args, 'storage') ?? 'local-lvm'}:${gibibytes(text(args, 'rootfs') ?? '8')}`,
    ...without(rest),
    ...(await login(args, vmid, context)),
    vmid,
  })
}

/** Creates a root password if the caller gave no login. It is saved to a file, because the model must not see it. */
const login = async (args: Args, vmid: string, context: RowContext): Promise<Args> => {
  if (args.password !== undefined || args['ssh-public-keys'] !== undefined) return {}
  const password = randomBytes(18).toString('base64url')
  await context.saveSecret(`root password of container ${vmid}`, `${password}\n`)
  return { password }
}

const freeId = async (args: Args, { call }: RowContext): Promise<string> =>
  text(args, 'vmid') ?? String(await call('GET /cluster/nextid', {}))
