import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, Pool } from 'pg'
import { z } from 'zod'
import type { Fleet, FleetChange } from '../ports/fleet.ts'

/** Changes that follow each other share a notification. */
const COLLECT_MS = 20
/** PostgreSQL allows 8000 bytes in a notification. */
const MAX_CHANGES = 100
const RECONNECT_MS = 1000

const notificationSchema = z.object({
  sender: z.string(),
  changes: z.array(z.tuple([z.string(), z.enum(['state', 'output'])])),
})

/** Undefined for what no daemon of this version has sent: every user of the database may notify the channel. */
const parseNotification = (payload: string): z.infer<typeof notificationSchema> | undefined => {
  try {
    return notificationSchema.safeParse(JSON.parse(payload)).data
  } catch {
    return undefined
  }
}

interface ChangeFeedOptions {
  connect(): Promise<Client>
  readonly pool: Pick<Pool, 'query'>
  /** The name of the schema, because other fleets may share the database. */
  readonly channel: string
  /** Marks the notifications of this daemon, which it ignores. */
  readonly sender: string
}

/**
 * Sends and receives changes through `LISTEN` and `NOTIFY`. They only wake waiters and carry no data, so what is lost
 * while a connection is down costs time, not correctness.
 */
export const createChangeFeed = ({ connect, pool, channel, sender }: ChangeFeedOptions) => {
  let collected = new Map<string, FleetChange['kind']>()
  let timer: NodeJS.Timeout | undefined
  let listener: (change: FleetChange) => void = () => {}
  const closing = new AbortController()

  const send = async (): Promise<void> => {
    timer = undefined
    const changes = [...collected]
    collected = new Map()
    for (let at = 0; at < changes.length; at += MAX_CHANGES) {
      const payload = JSON.stringify({ sender, changes: changes.slice(at, at + MAX_CHANGES) })
      await pool.query('select pg_notify($1, $2)', [channel, payload]).catch(() => undefined)
    }
  }

  const receive = (payload = ''): void => {
    const message = parseNotification(payload)
    if (message === undefined || message.sender === sender) return
    for (const [jobId, kind] of message.changes) listener({ jobId, kind })
  }

  const listen = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const client = await connect().catch(() => undefined)
      if (client !== undefined) {
        const ended = new Promise<void>(resolve => client.once('end', resolve))
        const end = (): void => void client.end().catch(() => undefined)
        client.on('notification', ({ payload }) => receive(payload))
        client.once('error', end)
        closing.signal.addEventListener('abort', end, { once: true })
        if (closing.signal.aborted) end()
        else await client.query(`listen "${channel}"`).catch(end)
        await ended
        closing.signal.removeEventListener('abort', end)
      }
      await sleep(RECONNECT_MS, undefined, { signal: closing.signal }).catch(() => undefined)
    }
  }
  const listening = listen()

  const publish: Fleet['publish'] = ({ jobId, kind }) => {
    if (closing.signal.aborted) return
    if (collected.get(jobId) !== 'state') collected.set(jobId, kind)
    timer ??= setTimeout(() => void send(), COLLECT_MS)
  }

  return {
    publish,
    onChange: (next: typeof listener): void => {
      listener = next
    },
    close: async (): Promise<void> => {
      closing.abort()
      clearTimeout(timer)
      await send()
      await listening
    },
  }
}
