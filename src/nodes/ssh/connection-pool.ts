import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { abortable } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type Master, openMaster } from './control-master.ts'
import type { SshSettings, SshTarget } from './ssh-arguments.ts'

export interface PoolOptions {
  ssh?: string
  settings: SshSettings
  /** Must be short: a socket path has about 100 characters. */
  controlDirectory: string
  /** sshd allows ten sessions for each connection by default, and the master uses one. */
  sessionsPerMaster?: number
  mastersPerNode?: number
  idleMs?: number
  env?: NodeJS.ProcessEnv
}

interface Lease {
  controlPath: string
  connectMs: number
  bootId: string | undefined
  release(): void
}

export interface ConnectionPool {
  /** Leases a session on a shared connection; waits when all are in use. */
  acquire(target: SshTarget, signal: AbortSignal): Promise<Lease>
  /** Drops the connections of a node, so that the next command opens a new one. */
  reset(id: string): void
  /** The boot id of the node at its last connection. */
  bootId(id: string): string | undefined
  close(): void
}

interface Connection {
  key: string
  opening: Promise<Master> | undefined
  master: Master | undefined
  sessions: number
  idle: NodeJS.Timeout | undefined
}

let counter = 0

export const createPool = (options: PoolOptions): ConnectionPool => {
  const { sessionsPerMaster = 8, mastersPerNode = 4, idleMs = 60_000 } = options
  const connections = new Map<string, Set<Connection>>()
  const waiters = createWaiters()
  const bootIds = new Map<string, string>()
  let closed = false
  mkdirSync(options.controlDirectory, { recursive: true, mode: 0o700 })

  const connectionsOf = (key: string): Set<Connection> => {
    const own = connections.get(key) ?? new Set()
    connections.set(key, own)
    return own
  }

  const drop = (connection: Connection): void => {
    clearTimeout(connection.idle)
    connections.get(connection.key)?.delete(connection)
    connection.master?.close()
  }

  /** Picks the fullest connection with a free session, so that others become idle and close. */
  const pick = (key: string): Connection | undefined => {
    const own = connectionsOf(key)
    const open = [...own].filter(
      connection =>
        connection.sessions < sessionsPerMaster && (connection.opening || connection.master?.alive),
    )
    if (open.length > 0) return open.reduce((a, b) => (b.sessions > a.sessions ? b : a))
    if (own.size >= mastersPerNode) return undefined
    const connection = newConnection(key)
    own.add(connection)
    return connection
  }

  const connect = (connection: Connection, target: SshTarget): Promise<Master> => {
    if (connection.master?.alive) return Promise.resolve(connection.master)
    connection.opening ??= open(options, connection.key, target).then(
      master => {
        connection.opening = undefined
        connection.master = master
        if (master.bootId !== undefined) bootIds.set(target.id, master.bootId)
        master.onExit(() => drop(connection))
        if (closed) master.close()
        return master
      },
      error => {
        drop(connection)
        throw error
      },
    )
    return connection.opening
  }

  const release = (connection: Connection): void => {
    connection.sessions--
    waiters.wakeNext(connection.key)
    if (connection.sessions > 0) return
    connection.idle = setTimeout(() => drop(connection), idleMs)
    connection.idle.unref()
  }

  const acquire = async (target: SshTarget, signal: AbortSignal): Promise<Lease> => {
    const key = keyOf(target)
    for (;;) {
      if (closed) throw new AppError('unavailable', 'The ssh connections are closing.')
      signal.throwIfAborted()
      const connection = pick(key)
      if (!connection) {
        await waiters.wait(key, signal)
        continue
      }
      connection.sessions++
      clearTimeout(connection.idle)
      const releaseOnce = once(() => release(connection))
      try {
        const { controlPath, connectMs, bootId } = await abortable(connect(connection, target), signal)
        return { controlPath, connectMs, bootId, release: releaseOnce }
      } catch (error) {
        releaseOnce()
        throw error
      }
    }
  }

  return {
    acquire,
    reset: id => {
      for (const [key, own] of connections)
        if (key.startsWith(`${hash(id)}`)) for (const connection of [...own]) drop(connection)
    },
    bootId: id => bootIds.get(id),
    close: () => {
      closed = true
      for (const own of connections.values()) for (const connection of [...own]) drop(connection)
      waiters.wakeAll()
    },
  }
}

/** Callers that wait for a free session, in order. */
const createWaiters = () => {
  const waiting: { key: string; wake(): void }[] = []
  const remove = (index: number) => (index < 0 ? undefined : waiting.splice(index, 1)[0])
  const wakeNext = (key: string): void => remove(waiting.findIndex(waiter => waiter.key === key))?.wake()
  return {
    wait: (key: string, signal: AbortSignal): Promise<void> => {
      const waiter = { key, wake: () => {} }
      waiting.push(waiter)
      const woken = new Promise<void>(resolve => {
        waiter.wake = resolve
      })
      return abortable(woken, signal).catch(error => {
        // A waiter that was woken, but is aborted at once, leaves the session to the next one.
        if (remove(waiting.indexOf(waiter)) === undefined) wakeNext(key)
        throw error
      })
    },
    wakeNext,
    wakeAll: (): void => {
      for (const { wake } of waiting.splice(0)) wake()
    },
  }
}

const newConnection = (key: string): Connection => ({
  key,
  opening: undefined,
  master: undefined,
  sessions: 0,
  idle: undefined,
})

const open = (options: PoolOptions, key: string, target: SshTarget): Promise<Master> =>
  openMaster({
    ssh: options.ssh ?? 'ssh',
    target,
    settings: options.settings,
    controlPath: join(
      options.controlDirectory,
      `${key}.${process.pid.toString(36)}${(counter++).toString(36)}`,
    ),
    env: options.env ?? process.env,
    // Several callers may wait for this connection; one that is cancelled must not close it for the others.
    signal: new AbortController().signal,
  })

const once = (work: () => void): (() => void) => {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}

/** Includes all settings of the node, so that a changed node gets new connections. */
const keyOf = (target: SshTarget): string => `${hash(target.id)}${hash(JSON.stringify(target))}`

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)
