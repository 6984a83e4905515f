import { randomInt } from 'node:crypto'
import { AppError } from '../../jobs/errors.ts'

/** Ids are picked at random from a range of our own; Proxmox VE has no way to reserve one. */
export const createVmids = ({ first, last }: { first: number; last: number }) => {
  const leased = new Set<number>()
  return {
    /** An id that nobody is known to have. */
    take(known: ReadonlySet<number>): number {
      const free = last - first + 1 - [...known].filter(id => id >= first && id <= last).length
      if (free <= leased.size) {
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
    release(id: number): void {
      leased.delete(id)
    },
  }
}

const lease = (leased: Set<number>, id: number): number => {
  leased.add(id)
  return id
}
