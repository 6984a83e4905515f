import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compiledFile } from '../../files/compiled-file.ts'
import { AppError } from '../../jobs/errors.ts'
import { hasOneDisk, mountNamespace } from '../sandbox/job-disks.ts'
import type { UidRange } from '../sandbox/sandbox-uids.ts'
import type { ShimConfig } from './shim-config.ts'
import type { ShimLink } from './shim-link.ts'

export interface ShimStarterOptions {
  readonly dir: string
  /** Chooses user ids for the machines of a shim, at most so many; null when they keep the daemon's. */
  chooseUids(used: readonly UidRange[], count: number): UidRange | null
  /** What all shims of a provider have in common. */
  config(): Promise<Omit<ShimConfig, 'id' | 'dir' | 'uids' | 'maxMachines' | 'idleSeconds' | 'build'>>
  readonly idleSeconds: number
  connectTo(id: string): Promise<ShimLink>
  usedUids(): readonly UidRange[]
}

export interface ShimStarter {
  startShim(): Promise<ShimLink>
  /** Those that are not connected yet, by id. */
  readonly starting: ReadonlyMap<string, Promise<ShimLink>>
}

const START_MS = 30_000

/** Machines that one shim holds. A shim that is killed takes all of them with it. */
export const MAX_MACHINES = 16

/** Starts shims, each with user ids that no other has. */
export const createShimStarter = (options: ShimStarterOptions): ShimStarter => {
  const { dir, connectTo } = options
  const starting = new Map<string, Promise<ShimLink>>()
  const startingUids = new Set<UidRange>()

  const start = async (id: string): Promise<ShimLink> => {
    // Reserved before anything is awaited: shims that start in the same moment must not get the same ones.
    const uids = options.chooseUids([...options.usedUids(), ...startingUids], MAX_MACHINES)
    if (uids !== null) startingUids.add(uids)
    try {
      const common = await options.config()
      const maxMachines = uids?.count ?? MAX_MACHINES
      const { idleSeconds } = options
      await startProcess({ ...common, id, dir, uids, maxMachines, idleSeconds, build: shimBuild() }, dir)
      return await connectTo(id)
    } finally {
      if (uids !== null) startingUids.delete(uids)
    }
  }

  return {
    starting,
    startShim: () => {
      const id = randomBytes(4).toString('hex')
      const starts = start(id).finally(() => starting.delete(id))
      starting.set(id, starts)
      return starts
    },
  }
}

/** Resolves when the shim listens. It has its own session and a minimal environment. */
const startProcess = (config: ShimConfig, dir: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const log = openSync(join(dir, 'shims.log'), 'a', 0o600)
    const argv = [
      ...(hasOneDisk(config.backend) ? mountNamespace(config.uids !== null) : []),
      ...[process.execPath, '--max-old-space-size=1024', '--max-semi-space-size=1'],
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

let build: string | undefined

/** Identifies the program of the shims that this daemon starts. */
export const shimBuild = (): string => {
  build ??= createHash('sha256')
    .update(readFileSync(compiledFile('shim/shim.js')))
    .digest('hex')
    .slice(0, 16)
  return build
}

const shimEnv = (): Record<string, string> => {
  const env: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'USER', 'LANG', 'TZ']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return env
}
