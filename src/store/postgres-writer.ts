import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Client } from 'pg'
import { AppError } from '../jobs/errors.ts'
import type { StoreDatabase } from './create-store.ts'
import { ConnectionLost, performOn, runScript, unreachable } from './postgres-client.ts'
import type { Work } from './sql.ts'

/** One connection that writes. Writes that arrive during a transaction share the next one, and one flush. */
export interface PostgresWriter extends Pick<StoreDatabase, 'write' | 'flush' | 'close'> {
  /** Rejects when another daemon has taken over the database; never resolves. */
  readonly lost: Promise<never>
}

export interface WriterOptions {
  connect(): Promise<Client>
  /** The token of this daemon. Another token in the database means that another daemon may write now. */
  readonly fence: string
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

export const createPostgresWriter = ({ connect, fence, label }: WriterOptions): PostgresWriter => {
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

  /** Begins a transaction that fails when this daemon may no longer write. Its row lock orders all writers. */
  const begin = async (connection: Client, name: string, lazy: boolean): Promise<void> => {
    const [, guard] = await runScript(
      connection,
      `begin; update owner set last_write = '${name}' where fence = ${fence};
       ${lazy ? 'set local synchronous_commit = off;' : ''} savepoint writes`,
    )
    if (guard?.rowCount === 1) return
    lostError = takenOver(label)
    rejectLost(lostError)
    throw lostError
  }

  /** Waits for the earlier transaction, if the server still works on it, and returns whether it was committed. */
  const isCommitted = async (connection: Client, name: string): Promise<boolean> => {
    const [answer] = await runScript(connection, 'select last_write from owner for update')
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
        const settle = await runAll(connection, batch)
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

/** Each write succeeds or fails on its own: when one fails, each runs under a savepoint of its own. */
const runAll = async (client: Client, batch: readonly Queued[]): Promise<Settle[]> => {
  try {
    const values: unknown[] = []
    for (const { work } of batch) values.push(await performOn(client, work()))
    return batch.map(
      ({ resolve }, index) =>
        () =>
          resolve(values[index]),
    )
  } catch (error) {
    if (error instanceof ConnectionLost) throw error
    await runScript(client, 'rollback to writes')
  }
  const settle: Settle[] = []
  for (const item of batch) settle.push(await runAlone(client, item))
  return settle
}

const runAlone = async (client: Client, { work, resolve, reject }: Queued): Promise<Settle> => {
  await runScript(client, 'savepoint writes')
  try {
    const value = await performOn(client, work())
    return () => resolve(value)
  } catch (error) {
    if (error instanceof ConnectionLost) throw error
    await runScript(client, 'rollback to writes')
    return () => reject(error)
  }
}

const takenOver = (label: string): AppError =>
  new AppError('conflict', `Another daemon has taken over ${label}; this one stops.`, {
    hint: 'One daemon per database schema. Give each its own: ?schema=NAME in the setting store.',
  })
