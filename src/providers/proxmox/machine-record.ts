import type { CreateRequest } from '../../ports.ts'
import type { Known } from './vm-details.ts'

export interface MachineRecord {
  readonly tokenHash: string
  /** Keeps details in memory until the next `store`. */
  set(more: Known): void
  store(more: Known): Promise<void>
}

/** The stored details of a machine that is being made. */
export const createRecord = (
  remember: CreateRequest['remember'],
  first: Known & { readonly tokenHash: string },
): MachineRecord => {
  let details: Known = first
  const set = (more: Known): void => {
    details = { ...details, ...more }
  }
  return {
    tokenHash: first.tokenHash,
    set,
    store: async more => {
      set(more)
      await remember({ ...details })
    },
  }
}
