import { createHash } from 'node:crypto'
import { parseDiskSize } from '../../../../src/proxmox/disk-size.ts'
import { check, isRealRoot } from '../acl.ts'
import { printDiskSize } from '../disk-size.ts'
import { die, PveError } from '../errors.ts'
import { type Context, NODE, type Operation, VMID } from '../operation.ts'
import { parseProps, printProps } from '../properties.ts'
import type { Values } from '../schema.ts'
import type { Vm } from '../state.ts'
import { startTask } from '../tasks.ts'
import { drivesOf, refuseIfLocked, vmOf, volumeOf, withConfigLock } from '../vm.ts'
import { CONFIG_PARAMS } from './config-keys.ts'
import { checkConfigRights } from './config-rights.ts'
import { applyConfig, detach } from './config-values.ts'

const CONTROL = {
  delete: { type: 'string', optional: true, format: 'pve-configid-list' },
  digest: { type: 'string', optional: true, maxLength: 40 },
  force: { type: 'boolean', optional: true },
  revert: { type: 'string', optional: true, format: 'pve-configid-list' },
  skiplock: { type: 'boolean', optional: true },
} as const
const VM_CONFIG_RIGHTS = ['Disk', 'CDROM', 'CPU', 'Memory', 'Network', 'HWType', 'Options', 'Cloudinit'].map(
  right => `VM.Config.${right}`,
)

export const configOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/config',
    name: 'vm_config',
    description: 'Tells the configuration of a virtual machine.',
    params: {
      node: NODE,
      vmid: VMID,
      current: { type: 'boolean', optional: true },
      snapshot: { type: 'string', optional: true },
    },
    permission: { check: ['/vms/{vmid}', ['VM.Audit']] },
    onNode: true,
    returns: 'object',
    run: context => {
      const { config } = vmOf(context)
      // Numbers are numbers only where the schema says integer; memory is a text.
      const loose = Object.entries(config).map(([key, value]) => [
        key,
        /^(cores|sockets|vcpus|onboot|template|protection|numa|kvm|balloon)$/.test(key)
          ? Number(value)
          : value,
      ])
      return Object.fromEntries(shuffled([...loose, ['digest', digestOf(config)]]))
    },
  },
  {
    method: 'PUT',
    path: '/nodes/{node}/qemu/{vmid}/config',
    name: 'update_vm',
    description: 'Changes the configuration of a virtual machine and waits for it.',
    params: { node: NODE, vmid: VMID, ...CONTROL, ...CONFIG_PARAMS },
    permission: { check: ['/vms/{vmid}', VM_CONFIG_RIGHTS], any: true },
    onNode: true,
    returns: 'null',
    run: async context => {
      await update(context)
      return null
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/config',
    name: 'update_vm_async',
    description: 'Changes the configuration of a virtual machine in a task.',
    params: {
      node: NODE,
      vmid: VMID,
      background_delay: { type: 'integer', optional: true, minimum: 1, maximum: 30 },
      ...CONTROL,
      ...CONFIG_PARAMS,
    },
    permission: { check: ['/vms/{vmid}', VM_CONFIG_RIGHTS], any: true },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      precheck(context, vm)
      return startTask(
        context,
        { node: vm.node, type: 'qmconfig', id: String(vm.vmid), auth: context.auth },
        () => update(context),
      )
    },
  },
  {
    method: 'PUT',
    path: '/nodes/{node}/qemu/{vmid}/resize',
    name: 'resize_vm',
    description: 'Makes a disk bigger.',
    params: {
      node: NODE,
      vmid: VMID,
      digest: { type: 'string', optional: true, maxLength: 40 },
      disk: { type: 'string', enum: drives() },
      size: { type: 'string', format: 'disk-size' },
      skiplock: { type: 'boolean', optional: true },
    },
    permission: { check: ['/vms/{vmid}', ['VM.Config.Disk']] },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      refuseIfLocked(vm)
      const disk = String(context.params.disk)
      const value = vm.config[disk] ?? die(`disk '${disk}' does not exist`)
      const props = parseProps(value, 'file')
      check(context.state, context.auth, `/storage/${props.file!.split(':')[0]}`, ['Datastore.AllocateSpace'])
      return startTask(
        context,
        { node: vm.node, type: 'resize', id: String(vm.vmid), auth: context.auth },
        task =>
          withConfigLock(context.state, vm.vmid, async () => {
            await task.step('resize', context.state.timing.taskMs)
            const volume = volumeOf(context.state, props.file!, vm.node)!
            const wanted = String(context.params.size)
            const size = wanted.startsWith('+')
              ? volume.size + parseDiskSize(wanted.slice(1))
              : parseDiskSize(wanted)
            if (size < volume.size) die('shrinking disks is not supported')
            volume.size = size
            vm.config[disk] = printProps({ ...props, size: printDiskSize(size) }, 'file')
          }),
      )
    },
  },
]

const precheck = (context: Context, vm: Vm): { changes: Values; deletes: string[] } => {
  const {
    node: _,
    vmid: __,
    delete: del,
    digest,
    force: ___,
    revert: ____,
    skiplock,
    background_delay: _____,
    ...changes
  } = context.params
  if (skiplock && !isRealRoot(context.auth)) throw new PveError(403, 'Only root may use this option.')
  const deletes = String(del ?? '')
    .split(/[\s,;]+/)
    .filter(Boolean)
  if (Object.keys(changes).length === 0 && deletes.length === 0) die('no options specified')
  checkConfigRights(context, `/vms/${vm.vmid}`, {
    ...Object.fromEntries(deletes.map(key => [key, vm.config[key] ?? ''])),
    ...changes,
  })
  if (digest !== undefined && digest !== digestOf(vm.config))
    die('checksum mismatch (file change by other user?)')
  return { changes, deletes }
}

const update = async (context: Context): Promise<void> => {
  const before = vmOf(context)
  const { changes, deletes } = precheck(context, before)
  await withConfigLock(context.state, before.vmid, async () => {
    const vm = vmOf(context)
    refuseIfLocked(vm)
    for (const key of deletes) {
      for (const drive of drivesOf(vm.config)) {
        if (drive.key === key) detach(context, vm, drive)
      }
      delete vm.config[key]
    }
    applyConfig(context, vm, changes)
  })
}

/** Perl tells the keys of a hash in any order. */
const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map(item => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

const digestOf = (config: Readonly<Record<string, string>>): string =>
  createHash('sha1')
    .update(JSON.stringify(Object.entries(config).sort()))
    .digest('hex')

function drives(): string[] {
  const range = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}`)
  return [
    ...range('ide', 4),
    ...range('scsi', 31),
    ...range('virtio', 16),
    ...range('sata', 6),
    'efidisk0',
    'tpmstate0',
  ]
}
