/** A parameter of a tool: the values that the client may send, and how they are sent to Proxmox. */
export interface Param {
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'strings' | 'object'
  readonly about?: string
  readonly values?: readonly string[]
  readonly min?: number
  readonly max?: number
  readonly pattern?: RegExp
  readonly maxLength?: number
  /** Name of the API parameter, if it differs. */
  readonly api?: string
  /** API values, for values that differ. */
  readonly wire?: Readonly<Record<string, string>>
  /** Never logged, never audited. */
  readonly secret?: boolean
  /** The value is an object whose entries are sent as parameters. */
  readonly spread?: boolean
  /** Only guests of this kind have it. */
  readonly only?: 'vm' | 'lxc'
  /** Used by the tool itself, not sent to Proxmox. */
  readonly local?: boolean
}

type Extra = Omit<Param, 'type'>

export const text = (about?: string, extra: Extra = {}): Param => ({
  type: 'string',
  ...some(about),
  ...extra,
})
export const int = (min: number, max: number, about?: string, extra: Extra = {}): Param => ({
  type: 'integer',
  min,
  max,
  ...some(about),
  ...extra,
})
export const num = (min: number, max: number, about?: string, extra: Extra = {}): Param => ({
  type: 'number',
  min,
  max,
  ...some(about),
  ...extra,
})
export const bool = (about?: string, extra: Extra = {}): Param => ({
  type: 'boolean',
  ...some(about),
  ...extra,
})
export const oneOf = (values: string, about?: string, extra: Extra = {}): Param => ({
  type: 'string',
  values: values.split('|'),
  ...some(about),
  ...extra,
})
export const strings = (about?: string, extra: Extra = {}): Param => ({
  type: 'strings',
  ...some(about),
  ...extra,
})
export const spread = (about: string): Param => ({ type: 'object', about, spread: true })
export const secret = (about?: string, extra: Extra = {}): Param => text(about, { secret: true, ...extra })

const some = (about: string | undefined) => (about === undefined ? {} : { about })

/** Names that Proxmox uses in paths: they never start with a dot or contain a slash. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/
export const name = (about?: string, extra: Extra = {}): Param =>
  text(about, { pattern: NAME, maxLength: 64, ...extra })

const NODE = { pattern: /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$/, maxLength: 63 }
export const node = text(undefined, NODE)
export const target = text('target node', NODE)
export const vmid = int(100, 999_999_999)
export const newid = int(100, 999_999_999, 'VMID of the new guest')
export const guestType = oneOf('vm|lxc', undefined, { wire: { vm: 'qemu', lxc: 'lxc' } })
export const storage = name()
export const volume = text('storage:path', {
  pattern: /^[A-Za-z][A-Za-z0-9_.-]*:[A-Za-z0-9_+.@:-]+(?:\/[A-Za-z0-9_+.@:-]+)*$/,
  maxLength: 512,
})
export const snapname = text(undefined, { pattern: /^[A-Za-z][A-Za-z0-9_-]+$/, maxLength: 40 })
export const userid = text('user@realm', {
  pattern: /^[^\s:/@!?#%\\]+@[A-Za-z][A-Za-z0-9._-]+$/,
  maxLength: 64,
})
export const tokenid = text(undefined, { pattern: /^[A-Za-z][A-Za-z0-9._-]+$/, maxLength: 64 })
export const upid = text('UPID:…', {
  pattern:
    /^UPID:[A-Za-z0-9-]+:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:[^:\s/?#%\\]+:[^:\s/?#%\\]*:[^:\s/?#%\\]+:$/,
  maxLength: 256,
})
export const iface = text(undefined, { pattern: /^[A-Za-z][A-Za-z0-9_.-]{0,19}(?::\d+)?$/, maxLength: 20 })
export const disk = text('e.g. scsi0, rootfs, mp0', {
  pattern: /^(?:(?:ide|scsi|sata|virtio|mp|unused|efidisk|tpmstate)\d{1,3}|rootfs)$/,
})
export const digest = text(undefined, { pattern: /^[0-9a-fA-F]{1,64}$/ })
export const comment = text(undefined, { maxLength: 4096 })
/** Settings to unset, comma separated. */
export const unset = text('settings to unset', {
  pattern: /^[A-Za-z0-9_-]+(?:[,; ][A-Za-z0-9_-]+)*$/,
  maxLength: 4096,
})
export const timeframe = oneOf('hour|day|week|month|year')
export const cf = oneOf('AVERAGE|MAX')

/** Seconds to wait for a task before its UPID is returned. */
export const wait = int(0, 50, undefined, { local: true })
export const WAIT_DEFAULT_S = 15

export const paging = {
  filter: text('status=running name~web', { local: true, maxLength: 512 }),
  fields: text(undefined, { local: true, maxLength: 512 }),
  limit: int(1, 500, undefined, { local: true }),
  cursor: text('next_cursor', { local: true, maxLength: 256 }),
} satisfies Record<string, Param>
/** Arguments of actions that return a long list. */
export const PAGED = 'filter fields limit cursor'
