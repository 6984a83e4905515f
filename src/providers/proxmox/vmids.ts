import { randomInt } from 'node:crypto'
import { AppError } from '../../jobs/errors.ts'

/**
 * Ids are picked at random from a range of our own; Proxmox VE has no way to reserve one. A lease ends with its
 * machine: the machine records are what keeps it over a restart.
 */
export const createVmids = ({ first, last }: { first: number; last: number }) => {
  const leased = new Set<number>()
  return {
    /** Returns an id that is not known to be in use. */
    take(known: ReadonlySet<number>): number {
      const used = new Set([...known, ...leased].filter(id => id >= first && id <= last))
      if (used.size > last - first) {
        throw new AppError('unavailable', `All ids from ${first} to ${last} are in use.`, {
          hint: 'Widen the range of VM ids.',
        })
      }
      for (let attempt = 0; attempt < 200; attempt++) {
        const id = randomInt(first, last + 1)
        if (!known.has(id) && !leased.has(id)) return lease(leased, id)
      }
      for (let id = first; id <= last; id++) if (!known.has(id) && !leased.has(id)) return lease(leased, id)
      throw new AppError('unavailable', `No id from ${first} to ${last} is free.`, {
        hint: 'Widen the range of VM ids.',
      })
    },
    /** Ids of machines that an earlier daemon made. */
    hold(ids: Iterable<number>): void {
      for (const id of ids) leased.add(id)
    },
    release(id: number): void {
      leased.delete(id)
    },
  }
}

const lease = (leased: Set<number>, id: number): number => {
  leased.add(id)
  return id
}
