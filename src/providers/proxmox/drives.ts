import { parseDiskSize } from '../../proxmox/disk-size.ts'

export interface Drive {
  readonly key: string
  /** `disk`, an image in a CD-ROM, a drive that Proxmox VE fills for cloud-init, or an empty CD-ROM. */
  readonly kind: 'disk' | 'cdrom' | 'cloudinit' | 'empty'
  /** Empty for an empty drive. */
  readonly storage: string
  readonly bytes: number
}

type Config = Readonly<Record<string, unknown>>

const KEY = /^(?:(?:scsi|virtio|sata|ide)\d+|efidisk0|tpmstate0)$/
const BOOTABLE = /^(scsi|virtio|sata|ide)(\d+)$/
/** The order in which the firmware tries the buses when the configuration sets no boot order. */
const BUSES = ['scsi', 'virtio', 'sata', 'ide']

/** Every drive of a guest, by name: Proxmox VE returns the keys of a configuration in any order. */
export const drivesOf = (config: Config): Drive[] =>
  Object.entries(config)
    .filter(([key]) => KEY.test(key))
    .map(([key, value]) => driveOf(key, String(value)))
    .sort((a, b) => (a.key < b.key ? -1 : 1))

const driveOf = (key: string, value: string): Drive => {
  const volume = value.split(',')[0]!.replace(/^file=/, '')
  const storage = volume.includes(':') ? volume.slice(0, volume.indexOf(':')) : ''
  const kind = /:(.*[-/])?cloudinit(\.|$)/.test(volume)
    ? 'cloudinit'
    : /(^|,)media=cdrom(,|$)/.test(value)
      ? storage === ''
        ? 'empty'
        : 'cdrom'
      : 'disk'
  const size = /(?:^|,)size=(\d+(?:\.\d+)?[KMGT]?)(?:,|$)/.exec(value)?.[1]
  return { key, kind, storage, bytes: size === undefined ? 0 : parseDiskSize(size) }
}

/** The disk that the guest boots from: first in its order, else first by bus and number. */
export const bootDisk = (config: Config): Drive | undefined => {
  const disks = drivesOf(config).filter(drive => drive.kind === 'disk' && BOOTABLE.test(drive.key))
  const order = /(?:^|,)order=([^,]+)/.exec(String(config.boot ?? ''))?.[1]?.split(';') ?? [
    String(config.bootdisk ?? ''),
  ]
  const named = order.map(key => disks.find(disk => disk.key === key)).find(disk => disk !== undefined)
  return named ?? disks.sort((a, b) => rank(a.key) - rank(b.key))[0]
}

const rank = (key: string): number => {
  const [, bus = '', index = ''] = BOOTABLE.exec(key) ?? []
  return BUSES.indexOf(bus) * 100 + Number(index)
}

/**
 * Chooses the drive of the seed image. `rivals` are the other cloud-init drives, to be removed: with two seeds it is
 * not defined which one the guest uses.
 */
export const seedDrive = (config: Config): { drive: string; rivals: string[] } => {
  const rivals = cloudInitDrives(config)
  const optical = drivesOf(config).find(drive => drive.kind === 'cdrom' || drive.kind === 'empty')?.key
  // A q35 machine has one drive on each IDE bus only.
  const free = ['ide2', 'ide0', 'sata5', 'sata4', 'ide3', 'ide1'].find(key => config[key] === undefined)
  const drive = rivals[0] ?? optical ?? free ?? 'ide2'
  return { drive, rivals: rivals.filter(key => key !== drive) }
}

/** Drives that Proxmox VE fills itself at every start. */
export const cloudInitDrives = (config: Config): string[] =>
  drivesOf(config)
    .filter(drive => drive.kind === 'cloudinit')
    .map(drive => drive.key)
