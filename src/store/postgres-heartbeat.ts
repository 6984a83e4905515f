import type { StoreDatabase } from './create-store.ts'
import { fenceExpired, type Lease } from './postgres-lease.ts'
import { get, type Work } from './sql.ts'

interface RenewalOptions {
  readonly lease: Lease
  readonly write: StoreDatabase['write']
  readonly onFenced: ((names: readonly string[]) => void) | undefined
}

/** Renewals in a term, so that two may fail. */
const RENEWALS = 3
/** Differences below this are the way to the server, not the clock. */
const MAX_NOISE_MS = 250

/** Renews the lease (every transaction does), fences daemons that do not, and measures the clock of the database. */
export const keepLease = ({ lease, write, onFenced }: RenewalOptions) => {
  let offsetMs = lease.clockOffsetMs
  let renewing: Promise<void> | undefined

  const renew = async (): Promise<void> => {
    const now = await write(databaseTime, { lazy: true })
    const measured = now - Date.now()
    if (Math.abs(measured - offsetMs) > MAX_NOISE_MS) offsetMs = measured
    const fenced = await write(() => fenceExpired(lease))
    if (fenced.length > 0) onFenced?.(fenced)
  }
  const tick = (): void => {
    // A failed write is repeated by the next tick; the writer reports a lost lease.
    renewing ??= renew()
      .catch(() => undefined)
      .finally(() => {
        renewing = undefined
      })
  }
  const timer = setInterval(tick, (lease.leaseSeconds * 1000) / RENEWALS)
  return {
    now: (): number => Date.now() + offsetMs,
    close: async (): Promise<void> => {
      clearInterval(timer)
      await renewing
    },
  }
}

function* databaseTime(): Work<number> {
  const { row } = yield get('select extract(epoch from clock_timestamp()) * 1000 as now')
  return Number(row?.now)
}
