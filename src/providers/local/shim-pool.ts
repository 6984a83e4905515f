import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { connectShim, type ShimLink } from './shim-link.ts'
import { createShimStarter, MAX_MACHINES, type ShimStarterOptions, shimBuild } from './start-shim.ts'

export interface ShimPool {
  /** Returns the shim that holds this machine, else one with room, else a new one, and keeps a place in it. */
  acquire(machineId: string, options: AcquireOptions): Promise<ShimLink>
  findHolder(machineId: string): Promise<ShimLink | undefined>
  links(): Promise<ShimLink[]>
  /** The socket on which a shim listens. */
  socketOf(link: ShimLink): string
  /** Why a living shim cannot be used: it may hold a job that no other shim holds. */
  refusal(): string | undefined
  /** Stops free shims and disconnects from the others. */
  close(): Promise<void>
}

interface AcquireOptions {
  /** The shim holds no other machine, before and after: the job has secrets. */
  readonly isAlone: boolean
  readonly signal: AbortSignal
}

export interface ShimPoolOptions
  extends Pick<ShimStarterOptions, 'dir' | 'chooseUids' | 'config' | 'idleSeconds'> {
  /** Number of free shims to keep running; others stop after `idleSeconds`. */
  readonly spare: number
  /** Called when shims have exited unexpectedly, and once at start. */
  onLost(lost: readonly string[], living: ReadonlySet<string>): void
  log(message: string, fields: Record<string, unknown>): void
}

export const createShimPool = (options: ShimPoolOptions): ShimPool => {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 })
  const links = new Set<ShimLink>()
  // The path of a Unix socket is limited to 108 bytes: /proc/self/fd/N shortens it.
  const dirFd = openSync(options.dir, 'r')
  let closed = false
  let refusal: string | undefined

  const livingIds = () => new Set([...[...links].map(link => link.id), ...starting.keys()])
  const holderOf = (machineId: string) => [...links].find(({ machines }) => machines.has(machineId))
  const usedUids = () =>
    [...links].flatMap(({ uid, capacity }) => (uid === null ? [] : [{ first: uid, count: capacity }]))

  const addLink = (link: ShimLink): ShimLink => {
    links.add(link)
    link.listen(event => {
      if (event.kind === 'leaving') refill()
      if (event.kind !== 'closed') return
      links.delete(link)
      if (closed) return
      const { id, machines } = link
      if (!link.retiring || machines.size > 0)
        options.log('a shim ended unexpectedly', {
          ...{ shim: id, machines: [...machines.keys()], reason: event.reason },
        })
      // Also after one that was leaving: it may have been killed before it had cleaned up.
      void removeShimFiles(options.dir, id).then(() => options.onLost([id], livingIds()))
    })
    // A shim of another version keeps what it holds, and leaves after it.
    if (link.build !== shimBuild()) retire(link)
    return link
  }

  const socketPath = (id: string): string => `/proc/self/fd/${dirFd}/${id}.sock`

  const connectTo = async (id: string): Promise<ShimLink> => addLink(await connectShim(socketPath(id)))

  const { startShim, starting } = createShimStarter({ ...options, connectTo, usedUids })

  const discovered = discoverShims(options, connectTo).then(({ lost, problem }) => {
    refusal = problem
    options.onLost(lost, livingIds())
  })

  /** Starts the next shim while the last one has room, so that no job waits for it. */
  const refill = () => {
    if (closed || options.spare === 0 || starting.size > 0) return
    const room = [...links].filter(isOpen).reduce((sum, link) => sum + roomIn(link), 0)
    if (room < SPARE_ROOM)
      startShim().catch(error => options.log('a shim did not start', { error: (error as Error).message }))
  }

  const idleTimer = setInterval(() => endIdle(links, options), options.idleSeconds * 250).unref()

  const waiting = { alone: 0, shared: 0 }
  /** Takes a place, or waits for the next shim; starts as many as the waiting callers need. */
  const findPlace = async (machineId: string, { isAlone, signal }: AcquireOptions): Promise<ShimLink> => {
    const kind = isAlone ? 'alone' : 'shared'
    waiting[kind] += 1
    try {
      for (;;) {
        signal.throwIfAborted()
        const link = isAlone ? [...links].find(isFree) : fullestWithRoom(links)
        if (link !== undefined) {
          link.machines.set(machineId, null)
          if (isAlone) link.retiring = true
          return link
        }
        if (starting.size < waiting.alone + Math.ceil(waiting.shared / MAX_MACHINES))
          void startShim().catch(() => {})
        await Promise.any(starting.values()).catch((error: AggregateError) => {
          throw error.errors[0]
        })
      }
    } finally {
      waiting[kind] -= 1
    }
  }

  void discovered.then(refill, () => {})

  return {
    acquire: async (machineId, acquire) => {
      await discovered
      acquire.signal.throwIfAborted()
      const holder = holderOf(machineId)
      if (holder !== undefined) return holder
      const link = await findPlace(machineId, acquire)
      setImmediate(refill)
      return link
    },
    findHolder: async machineId => {
      await discovered
      return holderOf(machineId)
    },
    links: () => discovered.then(() => [...links]),
    socketOf: ({ id }) => socketPath(id),
    refusal: () => refusal,
    close: async () => {
      closed = true
      clearInterval(idleTimer)
      await discovered.catch(() => {})
      await Promise.allSettled(starting.values())
      for (const link of links) {
        if (isFree(link)) retire(link)
        link.disconnect()
      }
      closeSync(dirFd)
    },
  }
}

/** Free places below which the next shim is started. */
const SPARE_ROOM = 4

const roomIn = ({ capacity, machines }: ShimLink): number => capacity - machines.size

const isOpen = (link: ShimLink): boolean => !link.retiring && !link.closed

const isFree = (link: ShimLink): boolean => isOpen(link) && link.machines.size === 0

/** The fullest, so that others become free and leave. */
const fullestWithRoom = (links: Iterable<ShimLink>): ShimLink | undefined =>
  [...links]
    .filter(link => isOpen(link) && roomIn(link) > 0)
    .reduce<ShimLink | undefined>(
      (best, link) => (best === undefined || roomIn(link) < roomIn(best) ? link : best),
      undefined,
    )

/** It gets no more machines, and leaves when it holds none. */
const retire = (link: ShimLink): void => {
  link.retiring = true
  link.send({ kind: 'retire' })
}

/** Stops shims that a burst of jobs has started, to free their memory. */
const endIdle = (
  links: Iterable<ShimLink>,
  { idleSeconds, spare }: Pick<ShimPoolOptions, 'idleSeconds' | 'spare'>,
): void => {
  const before = performance.now() - idleSeconds * 1000
  const free = [...links].filter(isFree)
  const idle = free.filter(link => link.idleSince < before).slice(0, Math.max(0, free.length - spare))
  for (const link of idle) retire(link)
}

/** Connects to the shims of an earlier daemon, and removes the files of those that have ended. */
const discoverShims = async (
  { dir, log }: Pick<ShimPoolOptions, 'dir' | 'log'>,
  connectTo: (id: string) => Promise<ShimLink>,
): Promise<{ lost: string[]; problem: string | undefined }> => {
  const lost: string[] = []
  let problem: string | undefined
  const names = await readdir(dir)
  const idsOf = (ending: string) =>
    names.filter(name => name.endsWith(ending)).map(name => name.slice(0, -ending.length))
  await Promise.all(
    idsOf('.sock').map(async id => {
      await connectTo(id).catch(async (error: AppError) => {
        const code = (error.cause as NodeJS.ErrnoException | undefined)?.code
        // A shim that is slow or speaks another protocol may still hold a job: leave it alone.
        if (code !== 'ECONNREFUSED' && code !== 'ENOENT') {
          // A shim that is exiting only closes the connection. It holds nothing, so it is not a problem.
          if (error.cause instanceof AppError) problem = error.cause.message
          return log('a shim does not answer', { shim: id, error: error.message })
        }
        lost.push(id)
        await removeShimFiles(dir, id)
      })
    }),
  )
  // A shim or a daemon that was killed while cleaning up may have removed the socket only.
  for (const id of idsOf('.d')) if (!existsSync(join(dir, `${id}.sock`))) await removeShimFiles(dir, id)
  return { lost, problem }
}

const removeShimFiles = async (dir: string, id: string): Promise<void> => {
  await rm(join(dir, `${id}.sock`), { force: true })
  await rm(join(dir, `${id}.d`), { recursive: true, force: true })
}
