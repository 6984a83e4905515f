import { AppError } from '../../../../jobs/errors.ts'
import type { Guest } from '../row-context.ts'
import { inRanges } from './call-rules.ts'

export interface Protection {
  /** Guests that no tool may change, by VMID, tag or pool. */
  readonly vmids: readonly string[]
  readonly tags: readonly string[]
  readonly pools: readonly string[]
  /** Identifies the machines of Deputy's jobs. */
  readonly own: { readonly vmids: readonly string[]; readonly tags: readonly string[] }
}

type Known = Guest | { readonly vmid: number }

/** Throws if one of the guests is protected or belongs to a job. */
export const refuseProtected = (protection: Protection, guests: readonly Known[]): void => {
  for (const guest of guests) {
    const tags = 'tags' in guest ? guest.tags : []
    if (isOwn(protection, guest, tags)) {
      throw new AppError('denied', `${nameOf(guest)} is the machine of a job.`, {
        hint: 'Look at it with list_jobs and end it with cancel_job.',
      })
    }
    const why = reason(protection, guest)
    if (why) {
      throw new AppError('denied', `${nameOf(guest)} is protected (${why}).`, {
        hint: 'Only the user can lift this, in the configuration under proxmoxTools, or by removing the tag.',
      })
    }
  }
}

/** A machine that is being created may not have its tag yet, so VMID and name are checked too. */
const isOwn = ({ own }: Protection, guest: Known, tags: readonly string[]): boolean =>
  inRanges(own.vmids, guest.vmid) ||
  tags.some(tag => own.tags.includes(tag)) ||
  ('name' in guest && /^deputy-[0-9a-f-]{36}$/.test(guest.name ?? ''))

const reason = (protection: Protection, guest: Known): string | undefined => {
  if (inRanges(protection.vmids, guest.vmid)) return 'by its VMID'
  if (!('node' in guest)) return undefined
  const tag = guest.tags.find(one => protection.tags.includes(one))
  if (tag) return `tag ${tag}`
  return guest.pool && protection.pools.includes(guest.pool) ? `pool ${guest.pool}` : undefined
}

export const nameOf = (guest: Known): string =>
  'node' in guest && guest.name ? `Guest ${guest.vmid} (${guest.name})` : `Guest ${guest.vmid}`
