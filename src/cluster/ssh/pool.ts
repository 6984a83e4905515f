import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { abortable } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import type { SshSettings, SshTarget } from './arguments.ts'
import { type Master, openMaster } from './master.ts'

export interface PoolOptions {
  ssh?: string
  settings: SshSettings
  /** Short: a socket path holds about a hundred characters. */
  controlDirectory: string
  /** sshd allows ten sessions a connection unless told otherwise, and one is the master's own. */
  sessionsPerMaster?: number
  mastersPerNode?: number
  idleMs?: number
  env?: NodeJS.ProcessEnv
}

export interface Lease {
  controlPath: string
  connectMs: number
  boot: string | undefined
  release(): void
}

export interface ConnectionPool {
  /** A place on a shared connection; waits when all are taken. */
  acquire(target: SshTarget, signal: AbortSignal): Promise<Lease>
  /** Drops the connections of a node: the next command opens a new one. */
  reset(id: string): void
  /** Which life of a node was seen last. */
  boot(id: string): string | undefined
  close(): void
}

interface Slot {
  key: string
  opening: Promise<Master> | undefined
  master: Master | undefined
  used: number
  idle: NodeJS.Timeout | undefined
}

interface Waiter {
  key: string
  wake(): void
}

let counter = 0

export const createPool = (options: PoolOptions): ConnectionPool => {
  const { sessionsPerMaster = 8, mastersPerNode = 4, idleMs = 60_000 } = options
  const slots = new Map<string, Set<Slot>>()
  const waiters: Waiter[] = []
  const boots = new Map<string, string>()
  let closed = false
  mkdirSync(options.controlDirectory, { recursive: true, mode: 0o700 })

  const slotsOf = (key: string): Set<Slot> => {
    const existing = slots.get(key)
    if (existing) return existing
    const created = new Set<Slot>()
    slots.set(key, created)
    return created
  }

  const drop = (slot: Slot): void => {
    clearTimeout(slot.idle)
    slots.get(slot.key)?.delete(slot)
    slot.master?.close()
  }

  const wakeNext = (key: string): void => {
    const index = waiters.findIndex(waiter => waiter.key === key)
    if (index >= 0) waiters.splice(index, 1)[0]!.wake()
  }

  /** The fullest connection that still has room, so that spare ones fall idle. */
  const pick = (key: string): Slot | undefined => {
    const own = slotsOf(key)
    const open = [...own].filter(
      slot => slot.used < sessionsPerMaster && (slot.opening || slot.master?.alive),
    )
    if (open.length > 0) return open.reduce((a, b) => (b.used > a.used ? b : a))
    if (own.size >= mastersPerNode) return undefined
    const slot: Slot = { key, opening: undefined, master: undefined, used: 0, idle: undefined }
    own.add(slot)
    return slot
  }

  const connect = (slot: Slot, target: SshTarget): Promise<Master> => {
    if (slot.master?.alive) return Promise.resolve(slot.master)
    slot.opening ??= openMaster({
      ssh: options.ssh ?? 'ssh',
      target,
      settings: options.settings,
      controlPath: join(
        options.controlDirectory,
        `${slot.key}.${process.pid.toString(36)}${(counter++).toString(36)}`,
      ),
      env: options.env ?? process.env,
      // Shared by all who wait for it: one of them giving up must not end it for the others.
      signal: new AbortController().signal,
    }).then(
      master => {
        slot.opening = undefined
        slot.master = master
        if (master.boot !== undefined) boots.set(target.id, master.boot)
        master.onExit(() => drop(slot))
        if (closed) master.close()
        return master
      },
      error => {
        drop(slot)
        throw error
      },
    )
    return slot.opening
  }

  const release = (slot: Slot): void => {
    slot.used--
    wakeNext(slot.key)
    if (slot.used > 0) return
    slot.idle = setTimeout(() => drop(slot), idleMs)
    slot.idle.unref()
  }

  const acquire = async (target: SshTarget, signal: AbortSignal): Promise<Lease> => {
    const key = keyOf(target)
    for (;;) {
      if (closed) throw new AppError('unavailable', 'the ssh connections are being closed')
      signal.throwIfAborted()
      const slot = pick(key)
      if (!slot) {
        await waitForRoom(key, signal)
        continue
      }
      slot.used++
      clearTimeout(slot.idle)
      let released = false
      const once = (): void => {
        if (released) return
        released = true
        release(slot)
      }
      try {
        const master = await abortable(connect(slot, target), signal)
        const { controlPath, connectMs, boot } = master
        return { controlPath, connectMs, boot, release: once }
      } catch (error) {
        once()
        throw error
      }
    }
  }

  const waitForRoom = (key: string, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const waiter: Waiter = {
        key,
        wake: () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        },
      }
      const onAbort = (): void => {
        const index = waiters.indexOf(waiter)
        if (index >= 0) waiters.splice(index, 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      waiters.push(waiter)
    })

  return {
    acquire,
    reset: id => {
      for (const [key, own] of slots)
        if (key.startsWith(`${hash(id)}`)) for (const slot of [...own]) drop(slot)
    },
    boot: id => boots.get(id),
    close: () => {
      closed = true
      for (const own of slots.values()) for (const slot of [...own]) drop(slot)
      for (const waiter of waiters.splice(0)) waiter.wake()
    },
  }
}

/** A node whose entry changed is another node to the pool. */
const keyOf = (target: SshTarget): string => `${hash(target.id)}${hash(JSON.stringify(target))}`

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)
