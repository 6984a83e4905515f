import type { ParamSchema, ParamTable } from '../schema.ts'

type Right = 'Options' | 'CPU' | 'Memory' | 'Disk' | 'CDROM' | 'Cloudinit' | 'Network' | 'HWType' | 'root'

const S: ParamSchema = { type: 'string', optional: true }
const B: ParamSchema = { type: 'boolean', optional: true }
const I = (minimum: number, maximum?: number): ParamSchema =>
  maximum === undefined
    ? { type: 'integer', optional: true, minimum }
    : { type: 'integer', optional: true, minimum, maximum }
const F = (format: string, more: ParamSchema = {}): ParamSchema => ({
  type: 'string',
  optional: true,
  format,
  ...more,
})
const N = (last: number, schema: ParamSchema = S): ParamSchema => ({ ...schema, last })

/** What can be set on a guest, and which VM.Config right it takes. */
const KEYS: Readonly<Record<string, readonly [Right, ParamSchema]>> = {
  acpi: ['HWType', B],
  agent: ['Options', F('pve-qm-agent')],
  args: ['root', S],
  balloon: ['Memory', I(0)],
  bios: ['Options', { ...S, enum: ['seabios', 'ovmf'] }],
  boot: ['Disk', S],
  bootdisk: ['Disk', S],
  cicustom: ['Cloudinit', S],
  cipassword: ['Cloudinit', S],
  citype: ['Cloudinit', { ...S, enum: ['configdrive2', 'nocloud', 'opennebula'] }],
  ciupgrade: ['Cloudinit', B],
  ciuser: ['Cloudinit', S],
  cores: ['CPU', I(1)],
  cpu: ['CPU', S],
  cpulimit: ['CPU', { type: 'number', optional: true, minimum: 0, maximum: 128 }],
  cpuunits: ['CPU', I(1, 262_144)],
  description: ['Options', { ...S, maxLength: 8192 }],
  efidisk0: ['Disk', S],
  hookscript: ['root', S],
  hotplug: ['HWType', S],
  'ide[n]': ['Disk', N(3, F('pve-qm-drive'))],
  'ipconfig[n]': ['Cloudinit', N(31)],
  kvm: ['HWType', B],
  localtime: ['Options', B],
  lock: ['root', S],
  machine: ['HWType', { ...S, maxLength: 40 }],
  memory: ['Memory', F('pve-qm-memory')],
  name: ['Options', F('dns-name')],
  nameserver: ['Cloudinit', S],
  'net[n]': ['Network', N(31, F('pve-qm-net'))],
  numa: ['CPU', B],
  onboot: ['Options', B],
  ostype: ['Options', S],
  protection: ['Options', B],
  rng0: ['HWType', S],
  'sata[n]': ['Disk', N(5, F('pve-qm-drive'))],
  'scsi[n]': ['Disk', N(30, F('pve-qm-drive'))],
  scsihw: ['HWType', S],
  searchdomain: ['Cloudinit', S],
  'serial[n]': ['HWType', N(3)],
  shares: ['Memory', I(0, 50_000)],
  smbios1: ['HWType', F('pve-qm-smbios1', { maxLength: 512 })],
  sockets: ['CPU', I(1)],
  sshkeys: ['Cloudinit', F('urlencoded')],
  tablet: ['HWType', B],
  tags: ['Options', F('pve-tag-list')],
  tdf: ['Options', B],
  'unused[n]': ['Disk', N(255)],
  vcpus: ['CPU', I(1)],
  vga: ['HWType', S],
  'virtio[n]': ['Disk', N(15, F('pve-qm-drive'))],
  vmgenid: ['Options', S],
}

export const CONFIG_PARAMS: ParamTable = Object.fromEntries(
  Object.entries(KEYS).map(([key, [, schema]]) => [key, schema]),
)

/** The right that a change of this key takes; drives with `media=cdrom` or an image of an ISO count as CD-ROM. */
export const rightFor = (key: string, value: string): Right => {
  const [right] = KEYS[key] ?? KEYS[key.replace(/\d+$/, '[n]')] ?? ['Options']
  if (right !== 'Disk' || !/^(ide|sata|scsi|virtio)\d+$/.test(key)) return right
  if (/^[^:,]+:cloudinit/.test(value)) return 'Cloudinit'
  return /media=cdrom/.test(value) || value === 'none' ? 'CDROM' : right
}
