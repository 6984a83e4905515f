import { AppError } from '../../../jobs/errors.ts'
import { isRecord } from '../../../jobs/records.ts'
import type { Guest, ProxmoxApi } from './row-context.ts'

export interface GuestIndex {
  /** Reloads the list once for an unknown VMID. The list of the cluster itself lags by up to ten seconds. */
  find(vmid: number, signal?: AbortSignal): Promise<Guest | undefined>
  need(vmid: number, signal?: AbortSignal): Promise<Guest>
  all(signal?: AbortSignal): Promise<Guest[]>
  /** Drops the cached list, because a change makes it outdated. */
  forget(): void
}

/** Caches node, pool and tags of every guest, from one request for the whole cluster. */
export const createGuestIndex = (
  api: Pick<ProxmoxApi, 'request'>,
  { maxAgeMs = 5000, now = Date.now }: { maxAgeMs?: number; now?: () => number } = {},
): GuestIndex => {
  let cached: { at: number; guests: Map<number, Guest> } | undefined

  const load = async (signal: AbortSignal | undefined, maxAge: number) => {
    if (cached && now() - cached.at < maxAge) return cached.guests
    const at = now()
    const answer = await api.request('GET', '/cluster/resources', { type: 'vm' }, signal ? { signal } : {})
    const guests = (Array.isArray(answer) ? answer : []).map(readGuest).filter(guest => guest !== undefined)
    cached = { at, guests: new Map(guests.map(guest => [guest.vmid, guest])) }
    return cached.guests
  }

  const find = async (vmid: number, signal?: AbortSignal) =>
    (await load(signal, maxAgeMs)).get(vmid) ?? (await load(signal, 0)).get(vmid)

  return {
    find,
    need: async (vmid, signal) => {
      const guest = await find(vmid, signal)
      if (guest) return guest
      throw new AppError('not_found', `No guest ${vmid} is visible to this token.`, {
        hint: 'get_cluster_resources {type: "vm"} lists them. For a guest created seconds ago, pass node and type.',
      })
    },
    forget: () => {
      cached = undefined
    },
    all: async signal => [...(await load(signal, maxAgeMs)).values()],
  }
}

const readGuest = (item: unknown): Guest | undefined => {
  if (!isRecord(item) || (item.type !== 'qemu' && item.type !== 'lxc')) return undefined
  const text = (key: string) =>
    typeof item[key] === 'string' && item[key] !== '' ? { [key]: item[key] } : {}
  return {
    vmid: Number(item.vmid),
    type: item.type,
    node: String(item.node),
    ...text('name'),
    ...text('status'),
    ...text('pool'),
    tags: String(item.tags ?? '')
      .split(/[;, ]+/)
      .filter(Boolean),
    template: Number(item.template ?? 0) === 1,
  }
}
