import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { connectShim, type ShimLink } from './shim-link.ts'
import { createShimStarter, type ShimStarterOptions } from './start-shim.ts'

export interface ShimPool {
  /** Returns the shim that holds this machine, else a free one, else a new one, reserved for the machine. */
  acquire(machineId: string, signal: AbortSignal): Promise<ShimLink>
  findHolder(machineId: string): Promise<ShimLink | undefined>
  links(): Promise<ShimLink[]>
  /** The socket on which a shim listens. */
  socketOf(link: ShimLink): string
  /** Why a living shim cannot be used: it may hold a job that no other shim holds. */
  refusal(): string | undefined
  /** Stops free shims and disconnects from the others. */
  close(): Promise<void>
}

export interface ShimPoolOptions extends Pick<ShimStarterOptions, 'dir' | 'chooseUid' | 'config'> {
  /** Number of free shims to keep running. */
  readonly spare: number
  /** Free shims beyond `spare` stop after this time. */
  readonly idleSeconds: number
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
  const usedUids = () => [...links].flatMap(({ uid }) => (uid === null ? [] : [uid]))

  const addLink = (link: ShimLink): ShimLink => {
    links.add(link)
    link.listen(event => {
      if (event.kind !== 'closed') return
      links.delete(link)
      if (closed || link.retiring) return
      options.log('a shim ended unexpectedly', { shim: link.id, run: link.runId, reason: event.reason })
      void removeShimFiles(options.dir, link.id).then(() => options.onLost([link.id], livingIds()))
    })
    return link
  }

  const socketPath = (id: string): string => `/proc/self/fd/${dirFd}/${id}.sock`

  const connectTo = async (id: string): Promise<ShimLink> => addLink(await connectShim(socketPath(id)))

  const { startShim, starting } = createShimStarter({ ...options, connectTo, usedUids })

  const discovered = discoverShims(options, connectTo).then(({ lost, problem }) => {
    refusal = problem
    options.onLost(lost, livingIds())
  })

  const refill = () => {
    if (closed) return
    const free = [...links].filter(isFree).length + starting.size
    for (let missing = options.spare - free; missing > 0; missing--)
      startShim().catch(error => options.log('a shim did not start', { error: (error as Error).message }))
  }

  const idleTimer = setInterval(() => endIdle(links, options), options.idleSeconds * 250).unref()

  let waiting = 0
  /** Takes a free shim, or the first that becomes free. Starts one shim for each waiting caller. */
  const acquireFree = async (machineId: string, signal: AbortSignal): Promise<ShimLink> => {
    waiting += 1
    try {
      for (;;) {
        signal.throwIfAborted()
        const free = [...links].filter(isFree)
        // One with a booted machine answers sooner than one that has just become free.
        const link = free.find(({ ready }) => ready) ?? free[0]
        if (link !== undefined) {
          link.reserved = true
          link.machineId = machineId
          return link
        }
        if (starting.size < waiting) void startShim().catch(() => {})
        await Promise.any(starting.values()).catch((error: AggregateError) => {
          throw error.errors[0]
        })
      }
    } finally {
      waiting -= 1
    }
  }

  void discovered.then(refill, () => {})

  return {
    acquire: async (machineId, signal) => {
      await discovered
      signal.throwIfAborted()
      const holder = [...links].find(link => link.machineId === machineId)
      if (holder !== undefined) return holder
      const link = await acquireFree(machineId, signal)
      setImmediate(refill)
      return link
    },
    findHolder: async machineId => {
      await discovered
      return [...links].find(link => link.machineId === machineId)
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
        if (isFree(link)) link.send({ kind: 'retire' })
        link.disconnect()
      }
      closeSync(dirFd)
    },
  }
}

const isFree = (link: ShimLink) =>
  link.machineId === null && !link.reserved && !link.retiring && !link.closed && link.runId === null

/** Stops shims that a burst of jobs has started, to free their memory. */
const endIdle = (
  links: Iterable<ShimLink>,
  { idleSeconds, spare }: Pick<ShimPoolOptions, 'idleSeconds' | 'spare'>,
): void => {
  const before = performance.now() - idleSeconds * 1000
  const free = [...links].filter(isFree)
  const idle = free.filter(link => link.idleSince < before).slice(0, Math.max(0, free.length - spare))
  for (const link of idle) {
    link.retiring = true
    link.send({ kind: 'retire' })
  }
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
