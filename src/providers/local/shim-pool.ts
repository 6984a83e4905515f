import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { compiledFile } from '../../files/compiled-file.ts'
import { AppError } from '../../jobs/errors.ts'
import { hasOneDisk, mountNamespace } from '../sandbox/job-disks.ts'
import type { ShimConfig } from './shim-config.ts'
import { connectShim, type ShimLink } from './shim-link.ts'

export interface ShimPool {
  /** Returns the shim that holds this machine, else a free one, else a new one, reserved for the machine. */
  acquire(machineId: string, signal: AbortSignal): Promise<ShimLink>
  findHolder(machineId: string): Promise<ShimLink | undefined>
  links(): Promise<ShimLink[]>
  /** Why a living shim cannot be used: it may hold a job that no other shim holds. */
  refusal(): string | undefined
  /** Stops free shims and disconnects from the others. */
  close(): Promise<void>
}

export interface ShimPoolOptions {
  readonly dir: string
  /** Number of free shims to keep running. */
  readonly spare: number
  /** Free shims beyond `spare` stop after this time. */
  readonly idleSeconds: number
  config(id: string, usedUids: ReadonlySet<number>): Promise<ShimConfig>
  /** Called when shims have exited unexpectedly, and once at start. */
  onLost(lost: readonly string[], living: ReadonlySet<string>): void
  log(message: string, fields: Record<string, unknown>): void
}

const START_MS = 30_000

export const createShimPool = (options: ShimPoolOptions): ShimPool => {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 })
  const links = new Set<ShimLink>()
  const starting = new Map<string, Promise<ShimLink>>()
  const startingUids = new Set<number>()
  // The path of a Unix socket is limited to 108 bytes: /proc/self/fd/N shortens it.
  const dirFd = openSync(options.dir, 'r')
  let closed = false
  let refusal: string | undefined

  const livingIds = () => new Set([...[...links].map(link => link.id), ...starting.keys()])

  const removeShimFiles = async (id: string): Promise<void> => {
    await rm(join(options.dir, `${id}.sock`), { force: true })
    await rm(join(options.dir, `${id}.d`), { recursive: true, force: true })
  }

  const addLink = (link: ShimLink): ShimLink => {
    links.add(link)
    link.listen(event => {
      if (event.kind !== 'closed') return
      links.delete(link)
      if (closed || link.retiring) return
      options.log('a shim ended unexpectedly', { shim: link.id, run: link.runId, reason: event.reason })
      void removeShimFiles(link.id).then(() => options.onLost([link.id], livingIds()))
    })
    return link
  }

  const connectTo = async (id: string): Promise<ShimLink> =>
    addLink(await connectShim(`/proc/self/fd/${dirFd}/${id}.sock`))

  const discovered = (async () => {
    const lost: string[] = []
    const names = await readdir(options.dir)
    const idsOf = (ending: string) =>
      names.filter(name => name.endsWith(ending)).map(name => name.slice(0, -ending.length))
    await Promise.all(
      idsOf('.sock').map(async id => {
        await connectTo(id).catch(async (error: AppError) => {
          const code = (error.cause as NodeJS.ErrnoException | undefined)?.code
          // A shim that is slow or speaks another protocol may still hold a job: leave it alone.
          if (code !== 'ECONNREFUSED' && code !== 'ENOENT') {
            // One that is just leaving closes the connection, and holds nothing.
            if (error.cause instanceof AppError) refusal = error.cause.message
            return options.log('a shim does not answer', { shim: id, error: error.message })
          }
          lost.push(id)
          await removeShimFiles(id)
        })
      }),
    )
    // A shim or a daemon that was killed while cleaning up may have removed the socket only.
    for (const id of idsOf('.d')) if (!existsSync(join(options.dir, `${id}.sock`))) await removeShimFiles(id)
    options.onLost(lost, livingIds())
  })()

  const startShim = (): Promise<ShimLink> => {
    const id = randomBytes(4).toString('hex')
    const starts = (async () => {
      const used = new Set([...[...links].map(link => link.uid ?? -1), ...startingUids])
      const config = await options.config(id, used)
      if (config.uid !== null) startingUids.add(config.uid)
      try {
        await startProcess(config, options.dir)
        return await connectTo(id)
      } finally {
        if (config.uid !== null) startingUids.delete(config.uid)
      }
    })().finally(() => starting.delete(id))
    starting.set(id, starts)
    return starts
  }

  const isFree = (link: ShimLink) =>
    link.machineId === null && !link.reserved && !link.retiring && !link.closed && link.runId === null

  const refill = () => {
    if (closed) return
    const free = [...links].filter(isFree).length + starting.size
    for (let missing = options.spare - free; missing > 0; missing--)
      startShim().catch(error => options.log('a shim did not start', { error: (error as Error).message }))
  }

  /** Stops shims that a burst of jobs has started, to free their memory. */
  const endIdle = () => {
    const before = performance.now() - options.idleSeconds * 1000
    const free = [...links].filter(isFree)
    const idle = free
      .filter(link => link.idleSince < before)
      .slice(0, Math.max(0, free.length - options.spare))
    for (const link of idle) {
      link.retiring = true
      link.send({ kind: 'retire' })
    }
  }
  const idleTimer = setInterval(endIdle, options.idleSeconds * 250).unref()

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
    links: async () => {
      await discovered
      return [...links]
    },
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

/** Resolves when the shim listens. It has its own session and a minimal environment. */
const startProcess = (config: ShimConfig, dir: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const log = openSync(join(dir, 'shims.log'), 'a', 0o600)
    const argv = [
      ...(hasOneDisk(config.backend) ? mountNamespace(config.uid) : []),
      ...[process.execPath, '--max-old-space-size=256', '--max-semi-space-size=1'],
      ...[compiledFile('shim/shim.js'), JSON.stringify(config)],
    ]
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: '/',
      detached: true,
      stdio: ['ignore', 'pipe', log],
      env: shimEnv(),
    })
    closeSync(log)
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail('it did not answer in time')
    }, START_MS)
    const fail = (reason: string) => {
      clearTimeout(timer)
      reject(
        new AppError('unavailable', `The process that holds jobs did not start: ${reason}.`, {
          hint: `Its log is ${join(dir, 'shims.log')}.`,
        }),
      )
    }
    child.once('error', error => fail(error.message))
    child.once('exit', (code, signal) => fail(`it ended with ${signal ?? code}`))
    child.stdout!.once('data', () => {
      clearTimeout(timer)
      child.stdout!.destroy()
      child.unref()
      resolve()
    })
  })

const shimEnv = (): Record<string, string> => {
  const env: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'USER', 'LANG', 'TZ']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return env
}
