import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Client } from 'pg'
import type { AppError } from '../jobs/errors.ts'
import type { StoreDatabase } from './create-store.ts'
import { ConnectionLost, performOn, runScript, unreachable } from './postgres-client.ts'
import { insertEvents } from './postgres-events.ts'
import { type Lease, leaseLost, renewal, takenOver } from './postgres-lease.ts'
import type { Statement, Work } from './sql.ts'

/** One connection that writes. Writes that arrive during a transaction share the next one, and one flush. */
export interface PostgresWriter extends Pick<StoreDatabase, 'write' | 'flush' | 'close'> {
  /** Rejects when this daemon may no longer write; never resolves. */
  readonly lost: Promise<never>
}

export interface WriterOptions {
  connect(): Promise<Client>
  readonly lease: Lease
  readonly label: string
}

interface Queued {
  readonly work: () => Work<unknown>
  readonly lazy: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

type Settle = () => void

const MAX_WRITES = 500
/** How long writes wait for a server that restarts. */
const PATIENCE_MS = 60_000
const RETRY_MS = 250

export const createPostgresWriter = ({ connect, lease, label }: WriterOptions): PostgresWriter => {
  let queue: Queued[] = []
  let draining: Promise<void> | undefined
  let client: Client | undefined
  let isClosing = false
  let lostError: AppError | undefined
  let rejectLost: (reason: unknown) => void = () => {}
  const lost = new Promise<never>((_, reject) => {
    rejectLost = reject
  })
  // The daemon waits for it; tests and short-lived stores need not.
  lost.catch(() => {})

  const disconnect = async (): Promise<void> => {
    const ended = client
    client = undefined
    await ended?.end().catch(() => undefined)
  }

  const connected = async (): Promise<Client> => {
    if (client !== undefined) return client
    const fresh = await connect()
    fresh.on('error', () => {
      if (client === fresh) client = undefined
    })
    client = fresh
    return fresh
  }

  /** Begins a transaction that fails when this daemon may no longer write. */
  const begin = async (connection: Client, name: string, lazy: boolean): Promise<void> => {
    const [, guard] = await runScript(
      connection,
      `begin; ${renewal(lease, name)};
       ${lazy ? 'set local synchronous_commit = off;' : ''} savepoint writes`,
    )
    if (guard?.rowCount === 1) return
    const [row] = await runScript(connection, `select state from daemons where id = '${lease.id}'`)
    lostError = row?.rows[0]?.state === 'up' ? takenOver(label) : leaseLost(label)
    rejectLost(lostError)
    throw lostError
  }

  /** Waits for the earlier transaction, if the server still works on it, and returns whether it was committed. */
  const isCommitted = async (connection: Client, name: string): Promise<boolean> => {
    const [answer] = await runScript(
      connection,
      `select last_write from daemons where id = '${lease.id}' for update`,
    )
    return answer?.rows[0]?.last_write === name
  }

  const commit = async (batch: readonly Queued[]): Promise<Settle[]> => {
    const name = randomUUID()
    const lazy = batch.every(item => item.lazy)
    const deadline = performance.now() + PATIENCE_MS
    /** Set while a commit was sent and not answered: it must not be run again before its outcome is known. */
    let sent: Settle[] | undefined
    for (;;) {
      try {
        const connection = await connected()
        if (sent !== undefined && (await isCommitted(connection, name))) return sent
        sent = undefined
        await begin(connection, name, lazy)
        const { settle, events } = await runAll(connection, batch)
        await insertEvents(connection, events)
        sent = settle
        await runScript(connection, 'commit')
        return settle
      } catch (error) {
        await disconnect()
        if (!(error instanceof ConnectionLost)) throw error
        const isLate = sent === undefined && performance.now() > deadline
        if (isLate || isClosing) throw unreachable(label, error)
        await setTimeout(RETRY_MS)
      }
    }
  }

  const drain = async (): Promise<void> => {
    // Writes of the current turn of the event loop share a transaction.
    await setImmediate()
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_WRITES)
      try {
        if (lostError) throw lostError
        for (const settle of await commit(batch)) settle()
      } catch (error) {
        for (const item of batch) item.reject(error)
      }
    }
    draining = undefined
  }

  return {
    lost,
    write: (work, { lazy = false } = {}) =>
      new Promise((resolve, reject) => {
        queue.push({ work, lazy, resolve: resolve as (value: unknown) => void, reject })
        draining ??= drain()
      }),
    flush: async () => draining,
    close: async () => {
      isClosing = true
      await draining
      queue = []
      await disconnect()
    },
  }
}

interface Performed {
  readonly settle: Settle[]
  readonly events: Statement[]
}

/** Each write succeeds or fails on its own: when one fails, each runs under a savepoint of its own. */
const runAll = async (client: Client, batch: readonly Queued[]): Promise<Performed> => {
  try {
    const values: unknown[] = []
    const events: Statement[] = []
    for (const { work } of batch) values.push(await performOn(client, work(), events))
    return {
      settle: batch.map(
        ({ resolve }, index) =>
          () =>
            resolve(values[index]),
      ),
      events,
    }
  } catch (error) {
    if (error instanceof ConnectionLost) throw error
    await runScript(client, 'rollback to writes')
  }
  const performed: Performed = { settle: [], events: [] }
  for (const item of batch) await runAlone(client, item, performed)
  return performed
}

const runAlone = async (
  client: Client,
  { work, resolve, reject }: Queued,
  { settle, events }: Performed,
): Promise<void> => {
  await runScript(client, 'savepoint writes')
  const own: Statement[] = []
  try {
    const value = await performOn(client, work(), own)
    events.push(...own)
    settle.push(() => resolve(value))
  } catch (error) {
    if (error instanceof ConnectionLost) throw error
    await runScript(client, 'rollback to writes')
    settle.push(() => reject(error))
  }
}
