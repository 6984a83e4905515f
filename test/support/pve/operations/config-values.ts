import { printDiskSize } from '../disk-size.ts'
import { die } from '../errors.ts'
import type { Context } from '../operation.ts'
import { DRIVE, parseProps, printProps } from '../properties.ts'
import type { Values } from '../schema.ts'
import { freshIdentity, type Vm, type Volume } from '../state.ts'
import { type Drive, drivesOf, dropVolume, putVolume, volumeOf } from '../vm.ts'

/** What create and update share: values as they are given, and what Proxmox VE fills in itself. */
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

/** A disk is kept as unused, a cloud-init image goes, any other image stays on its storage. */
export const detach = ({ state }: Context, vm: Vm, drive: Drive): void => {
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
