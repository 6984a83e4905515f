import { createHash } from 'node:crypto'
import { parseDiskSize, printDiskSize } from '../../../proxmox/sizes.ts'
import { check, isRealRoot, may } from '../acl.ts'
import { badParams, die, PveError } from '../errors.ts'
import { type Context, NODE, type Operation, VMID } from '../operation.ts'
import { DRIVE, parseProps, printProps } from '../properties.ts'
import type { Values } from '../schema.ts'
import { freshIdentity, type Vm, type Volume } from '../state.ts'
import { startTask } from '../tasks.ts'
import {
  type Drive,
  drivesOf,
  dropVolume,
  putVolume,
  refuseIfLocked,
  vmOf,
  volumeOf,
  withConfigLock,
} from '../vm.ts'
import { CONFIG_PARAMS, rightFor } from './config-keys.ts'

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

/** What create and update share: rights, formats and values that Proxmox VE fills in itself. */
export const applyConfig = (context: Context, vm: Vm, params: Values): void => {
  for (const [key, given] of Object.entries(params)) {
    const value = typeof given === 'boolean' ? (given ? '1' : '0') : String(given)
    if (DRIVE.test(key)) {
      const before = drivesOf(vm.config).find(drive => drive.key === key)
      const next = attach(context, vm, key, value)
      if (before && before.volid !== parseProps(next, 'file').file) detach(context, vm, before)
      vm.config[key] = next
    } else if (/^net\d+$/.test(key)) vm.config[key] = withMac(value)
    else if (key === 'tags')
      vm.config[key] = [
        ...new Set(
          value
            .toLowerCase()
            .split(/[\s,;]+/)
            .filter(Boolean),
        ),
      ]
        .sort()
        .join(';')
    else if (value === '') delete vm.config[key]
    else vm.config[key] = value
  }
}

export const checkConfigRights = ({ state, auth }: Context, at: string, params: Values): void => {
  if (params.sshkeys !== undefined) checkSshKeys(String(params.sshkeys))
  for (const [key, given] of Object.entries(params)) {
    const right = rightFor(key, String(given))
    if (right === 'root') {
      if (!isRealRoot(auth)) throw new PveError(403, `only root can set '${key}' config`)
      continue
    }
    const rights =
      key.startsWith('ipconfig') || right === 'Cloudinit'
        ? ['VM.Config.Cloudinit', 'VM.Config.Network']
        : [`VM.Config.${right}`]
    check(state, auth, at, rights, true)
    if (/^net\d+$/.test(key)) checkBridge({ state, auth }, String(given))
    const storage = DRIVE.test(key) ? /^([^:,]+):/.exec(String(given))?.[1] : undefined
    if (storage)
      check(
        state,
        auth,
        `/storage/${storage}`,
        right === 'CDROM' ? ['Datastore.Audit', 'Datastore.AllocateSpace'] : ['Datastore.AllocateSpace'],
        true,
      )
  }
}

export const checkBridge = ({ state, auth }: Pick<Context, 'state' | 'auth'>, net: string): void => {
  const { bridge, tag } = parseProps(net, 'model')
  if (bridge === undefined || Number(state.version.version.split('.')[0]) < 8) return
  const at = `/sdn/zones/${state.vnets.get(bridge) ?? 'localnetwork'}/${bridge}`
  if (tag !== undefined && may(state, auth, `${at}/${tag}`, ['SDN.Use'])) return
  check(state, auth, at, ['SDN.Use'])
}

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

/** A disk is kept as unused, a cloud-init image goes, any other image stays on its storage. */
const detach = ({ state }: Context, vm: Vm, drive: Drive): void => {
  if (drive.cloudinit) dropVolume(state, drive.volid, vm.node)
  else if (!drive.cdrom && !drive.key.startsWith('unused'))
    vm.config[`unused${freeIndex(vm, 'unused')}`] = drive.volid
}

const attach = (context: Context, vm: Vm, key: string, value: string): string => {
  const { state } = context
  const props = parseProps(value, 'file')
  const [storage = '', name = ''] = (props.file ?? '').split(':')
  const isNew = vm.config[key] === undefined
  if (props.file === 'none') return value
  const definition = state.storages.get(storage) ?? die(`storage '${storage}' does not exist`)
  if (name === 'cloudinit') {
    const volid = `${storage}:vm-${vm.vmid}-cloudinit`
    putVolume(state, volume(volid, storage, vm, 4 * 1024 ** 2, definition.shared), vm.node)
    appendBoot(vm, key, isNew)
    return printProps({ ...props, file: volid, media: 'cdrom' }, 'file')
  }
  if (/^\d+(\.\d+)?$/.test(name)) {
    if (!definition.content.includes('images'))
      die(`storage '${storage}' does not support content-type 'images'`)
    const source = props['import-from']
    const found =
      source === undefined
        ? undefined
        : (volumeOf(state, source, vm.node) ?? die(`volume '${source}' does not exist`))
    const volid = `${storage}:vm-${vm.vmid}-disk-${freeDisk(context, vm, storage)}`
    putVolume(
      state,
      volume(volid, storage, vm, found ? diskSize(found) : Number(name) * 1024 ** 3, definition.shared),
      vm.node,
    )
    appendBoot(vm, key, isNew)
    return printProps(
      {
        ...props,
        'import-from': undefined,
        file: volid,
        size: printDiskSize(volumeOf(state, volid, vm.node)!.size),
      },
      'file',
    )
  }
  const existing = volumeOf(state, props.file!, vm.node)
  if (!existing) return die(`volume '${props.file}' does not exist`)
  appendBoot(vm, key, isNew)
  return printProps({ ...props, size: printDiskSize(existing.size) }, 'file')
}

/** What an image says of the disk that it holds; a file without that is the disk itself. */
const diskSize = ({ data, size }: Volume): number =>
  data?.subarray(0, 4).toString('latin1') === 'QFI\xfb' ? Number(data.readBigUInt64BE(24)) : size

const volume = (volid: string, storage: string, vm: Vm, size: number, shared: boolean) => ({
  volid,
  storage,
  node: shared ? undefined : vm.node,
  content: 'images',
  size,
  vmid: vm.vmid,
  ctime: Math.floor(Date.now() / 1000),
})

const freeDisk = ({ state }: Context, vm: Vm, storage: string): number => {
  for (let index = 0; ; index++)
    if (!volumeOf(state, `${storage}:vm-${vm.vmid}-disk-${index}`, vm.node)) return index
}

/** A drive that is added joins an existing boot order. */
const appendBoot = (vm: Vm, key: string, isNew: boolean): void => {
  const order = /^order=(.*)$/.exec(vm.config.boot ?? '')?.[1]
  if (isNew && order !== undefined && !order.split(';').includes(key))
    vm.config.boot = `order=${order};${key}`
}

const withMac = (value: string): string => {
  const props = parseProps(value, 'model')
  const model =
    props.model ??
    Object.keys(props).find(key => ['virtio', 'e1000', 'e1000e', 'rtl8139', 'vmxnet3'].includes(key))!
  const mac = props[model] ?? props.macaddr ?? freshIdentity().mac
  const { model: _, macaddr: __, [model]: ___, ...rest } = props
  return printProps({ [model]: mac, ...rest }, '')
}

const freeIndex = (vm: Vm, prefix: string): number => {
  for (let index = 0; ; index++) if (vm.config[`${prefix}${index}`] === undefined) return index
}

/** Perl tells the keys of a hash in any order. */
const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map(item => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

export const digestOf = (config: Readonly<Record<string, string>>): string =>
  createHash('sha1')
    .update(JSON.stringify(Object.entries(config).sort()))
    .digest('hex')

const checkSshKeys = (value: string): void => {
  for (const line of decodeURIComponent(value)
    .split('\n')
    .filter(text => text.trim() !== '')) {
    if (!/^(ssh-|ecdsa-|sk-)\S+ \S+/.test(line))
      throw badParams({ sshkeys: 'SSH public key validation error' })
  }
}

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
