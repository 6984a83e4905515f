import { AppError } from '../../../jobs/errors.ts'
import type { Guest, ProxmoxApi } from './row-context.ts'
import { isItem } from './shape/fields.ts'

export interface GuestIndex {
  /** Refreshes once for an id it does not know: the cluster's own list lags by up to ten seconds. */
  find(vmid: number, signal?: AbortSignal): Promise<Guest | undefined>
  need(vmid: number, signal?: AbortSignal): Promise<Guest>
  all(signal?: AbortSignal): Promise<Guest[]>
  /** After a change of ours what was known may be wrong. */
  forget(): void
}

/** Where each guest lives and what marks it, from one request for the whole cluster. */
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
      throw new AppError('not_found', `There is no guest ${vmid} that this token can see.`, {
        hint: 'get_cluster_resources {type: "vm"} lists them. A guest made seconds ago may need its node and type named.',
      })
    },
    forget: () => {
      cached = undefined
    },
    all: async signal => [...(await load(signal, maxAgeMs)).values()],
  }
}

const readGuest = (item: unknown): Guest | undefined => {
  if (!isItem(item) || (item.type !== 'qemu' && item.type !== 'lxc')) return undefined
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
