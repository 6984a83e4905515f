import { AppError } from '../../jobs/errors.ts'
import { privilegesOn } from '../../proxmox/check-permissions.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { type Drive, drivesOf } from './drives.ts'
import { tagsIn } from './identity.ts'
import type { VmRef } from './vm-ref.ts'

export interface GuestEntry {
  readonly vmid: number
  readonly node: string
  readonly name: string | undefined
  readonly status: string
  readonly template: boolean
  readonly tags: readonly string[]
  readonly pool: string | undefined
  readonly maxmem: number
}

export interface NodeEntry {
  readonly node: string
  readonly online: boolean
  /** Undefined without the privilege to audit the node. */
  readonly freeMemory: number | undefined
  readonly load: number | undefined
}

type Loose = Readonly<Record<string, unknown>>

/** The cluster-wide list has states and names that are a few seconds old. */
const RECENT_MS = 5000

/** Every guest that the token may see. Ids are current, names and states a few seconds old. */
export const listGuests = async (proxmox: Proxmox, signal?: AbortSignal): Promise<GuestEntry[]> => {
  const rows = await proxmox.get<Loose[]>('/cluster/resources', { type: 'vm' }, signal ? { signal } : {})
  return rows
    .filter(row => row.type === 'qemu')
    .map(row => ({
      vmid: Number(row.vmid),
      node: String(row.node),
      name: row.name === undefined ? undefined : String(row.name),
      status: String(row.status ?? 'unknown'),
      template: Number(row.template ?? 0) === 1,
      tags: tagsIn(row.tags),
      pool: row.pool === undefined ? undefined : String(row.pool),
      maxmem: Number(row.maxmem ?? 0),
    }))
}

export interface GuestList {
  /** As they are now. */
  read(signal: AbortSignal): Promise<GuestEntry[]>
  /** As they were a moment ago, where somebody has asked then. */
  recent(signal: AbortSignal): Promise<GuestEntry[]>
}

/** Provisioning lists the guests often, so a recent list is shared; `now` always asks the cluster. */
export const createGuestList = (proxmox: Proxmox): GuestList => {
  let last: { readonly at: number; readonly guests: GuestEntry[] } | undefined
  const read = async (signal: AbortSignal): Promise<GuestEntry[]> => {
    const at = proxmox.clock.now()
    const guests = await listGuests(proxmox, signal)
    last = { at, guests }
    return guests
  }
  return {
    read,
    recent: async signal =>
      last !== undefined && proxmox.clock.now() - last.at < RECENT_MS ? last.guests : read(signal),
  }
}

/** Without the privilege to audit pools none is shown; then a visible guest is assumed to be in our pool. */
export const poolOf = async (
  proxmox: Proxmox,
  guest: GuestEntry,
  expected: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  if (guest.pool !== undefined) return guest.pool
  const granted = await privilegesOn(proxmox.request, `/pool/${expected}`, { signal })
  return granted.has('Pool.Audit') ? undefined : expected
}

export const listNodes = async (proxmox: Proxmox, signal?: AbortSignal): Promise<NodeEntry[]> => {
  const rows = await proxmox.get<Loose[]>('/nodes', {}, signal ? { signal } : {})
  return rows.map(row => ({
    node: String(row.node),
    online: row.status === 'online',
    freeMemory: row.maxmem === undefined ? undefined : Number(row.maxmem) - Number(row.mem ?? 0),
    load: row.cpu === undefined ? undefined : Number(row.cpu),
  }))
}

export const readConfig = (proxmox: Proxmox, { node, vmid }: VmRef, signal?: AbortSignal): Promise<Loose> =>
  proxmox.get<Loose>(path`/nodes/${node}/qemu/${vmid}/config`, {}, signal ? { signal } : {})

export interface Template {
  readonly vmid: number
  readonly node: string
  readonly config: Loose
  readonly drives: readonly Drive[]
}

/** The template of a name or an id. A name that is not cached yet is asked of the nodes. */
export const findTemplate = async (
  proxmox: Proxmox,
  wanted: string,
  guests: readonly GuestEntry[],
  signal?: AbortSignal,
): Promise<Template> => {
  const byId = /^\d+$/.test(wanted) ? guests.find(guest => guest.vmid === Number(wanted)) : undefined
  const found = byId ?? (await findByName(proxmox, guests, wanted, signal))
  if (found === undefined) {
    throw new AppError(
      'not_found',
      `There is no template "${wanted}" on the Proxmox VE cluster, or the token may not see it.`,
      {
        hint: 'Set DEFAULT_VM_TEMPLATE to the name or id of a template and grant VM.Clone and VM.Audit on it: deputy doctor',
      },
    )
  }
  const config = await readConfig(proxmox, found, signal)
  if (Number(config.template ?? 0) !== 1) {
    throw new AppError('invalid', `VM ${found.vmid} is no template.`, {
      hint: `Convert it: qm template ${found.vmid}`,
    })
  }
  return { vmid: found.vmid, node: found.node, config, drives: drivesOf(config) }
}

const findByName = async (
  proxmox: Proxmox,
  guests: readonly GuestEntry[],
  name: string,
  signal?: AbortSignal,
): Promise<{ vmid: number; node: string } | undefined> => {
  const matches = guests.filter(guest => guest.name === name)
  if (matches.length > 1) {
    throw new AppError(
      'conflict',
      `${matches.length} guests are named "${name}": ${matches.map(guest => guest.vmid).join(', ')}.`,
      {
        hint: 'Use the id of the template instead.',
      },
    )
  }
  if (matches[0]) return matches[0]
  for (const guest of guests.filter(one => one.name === undefined)) {
    const config = await readConfig(proxmox, guest, signal).catch(() => undefined)
    if (config?.name === name) return guest
  }
  return undefined
}

export interface StorageEntry {
  readonly storage: string
  readonly shared: boolean
  readonly type: string
  readonly content: readonly string[]
  /** Whether the node can use the storage. */
  readonly active: boolean
  readonly available: number
}

/** What a node offers to machines. */
export interface NodeOffer {
  readonly storages: readonly StorageEntry[]
  /** Undefined if the node does not report it. */
  readonly bridges: ReadonlySet<string> | undefined
}

export const listStorages = async (
  proxmox: Proxmox,
  node: string,
  signal?: AbortSignal,
): Promise<StorageEntry[]> => {
  const rows = await proxmox.get<Loose[]>(
    path`/nodes/${node}/storage`,
    { enabled: true },
    signal ? { signal } : {},
  )
  return rows.map(row => ({
    storage: String(row.storage),
    shared: Number(row.shared ?? 0) === 1,
    type: String(row.type ?? ''),
    content: String(row.content ?? '').split(','),
    active: Number(row.active ?? 1) === 1,
    available: Number(row.avail ?? 0),
  }))
}

/** Bridges and vnets of a node; undefined if the node does not report them. */
export const listBridges = async (
  proxmox: Proxmox,
  node: string,
  signal?: AbortSignal,
): Promise<ReadonlySet<string> | undefined> => {
  try {
    const rows = await proxmox.get<Loose[]>(
      path`/nodes/${node}/network`,
      { type: 'any_bridge' },
      signal ? { signal } : {},
    )
    return new Set(rows.map(row => String(row.iface)))
  } catch {
    return undefined
  }
}
