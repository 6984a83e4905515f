import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isListening } from '../../src/client/daemon-info.ts'
import { FAULT_POINTS } from '../../src/engine/engine-context.ts'
import { MAX_MACHINES } from '../../src/providers/local/start-shim.ts'
import type { Fault } from './fault.ts'
import type { Keeper } from './keeper.ts'
import { daemons, freeze, type Process, processes, shims, signal } from './processes.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

/** How long a fault of the daemon waits for one to hit. */
const WAIT_MS = 15_000

/** Faults that do not depend on a provider: of the daemon, its shims, its clients and its disk. */
export const commonFaults = (world: World, keeper: Keeper): Fault[] => [
  ...daemonFaults(keeper).map(fault => ({
    ...fault,
    // On a busy computer a start takes longer than the pause between two faults: no daemon would ever serve.
    strike: async (random: Random) => {
      await waitForDaemon(world)
      return fault.strike(random)
    },
  })),
  { name: 'shim-kill', weight: 2, strike: random => killShim(world, random) },
  { name: 'shim-freeze', weight: 2, strike: random => freezeOne(shims(), random) },
  { name: 'client-kill', weight: 3, strike: async random => end(some(clients(), random), 'SIGKILL') },
  { name: 'client-freeze', weight: 1, strike: random => freezeOne(clients(), random) },
  { name: 'disk-full', target: 'disk', weight: 1, strike: random => fillDisk(world, random) },
]

const daemonFaults = (keeper: Keeper): Fault[] => [
  { name: 'daemon-kill', weight: 6, strike: async () => end(daemons(), 'SIGKILL') },
  { name: 'daemon-stop', weight: 2, strike: async () => end(daemons(), 'SIGTERM') },
  {
    name: 'daemon-crash-at',
    weight: 3,
    strike: async random => {
      const point = `${random.pick(FAULT_POINTS)}:${random.integer(1, 4)}`
      keeper.next({ DEPUTY_FAULT_POINT: point })
      return `${point}, after ${end(daemons(), 'SIGKILL')}`
    },
  },
  { name: 'daemon-slow-start', weight: 2, strike: random => slowStart(keeper, random) },
  {
    name: 'daemon-kill-starting',
    weight: 2,
    strike: async random => {
      const hit: string[] = []
      for (let times = random.integer(1, 4); times > 0; times--) {
        hit.push(end(daemons(), 'SIGKILL'))
        keeper.start()
        await sleep(random.between(30, 900))
      }
      return `${hit.join('; ')}; ${end(daemons(), 'SIGKILL')}`
    },
  },
  { name: 'daemon-freeze', weight: 2, strike: random => freezeOne(daemons(), random) },
]

const waitForDaemon = async ({ home }: World): Promise<void> => {
  const deadline = performance.now() + WAIT_MS
  while (!(await isListening(home.socket)) && performance.now() < deadline) await sleep(100)
}

const clients = (): Process[] =>
  processes().filter(({ command }) => /\/cli\/main\.js (run|submit) /.test(command))

const some = (list: readonly Process[], random: Random): Process[] =>
  list.length === 0 ? [] : [random.pick(list)]

const end = (list: readonly Process[], name: NodeJS.Signals): string => {
  for (const { pid } of list) signal(pid, name)
  return `pids ${list.map(({ pid }) => pid).join(', ') || 'none'}`
}

export const freezeOne = async (list: readonly Process[], random: Random): Promise<string> => {
  const [victim] = some(list, random)
  const ms = random.between(100, 4000)
  if (victim === undefined) return 'nobody'
  await freeze(victim.pid, ms)
  return `pid ${victim.pid} for ${ms.toFixed(0)} ms`
}

/** A start that takes seconds, as on a busy computer: it runs for a tenth of the time only. */
const slowStart = async (keeper: Keeper, random: Random): Promise<string> => {
  const old = end(daemons(), 'SIGKILL')
  keeper.start()
  const [victim] = daemons().slice(-1)
  const rounds = random.integer(5, 25)
  for (let round = 0; round < rounds && victim !== undefined; round++) {
    await freeze(victim.pid, 150)
    await sleep(15)
  }
  return `${old}; pid ${victim?.pid} in ${rounds} rounds`
}

const killShim = async (world: World, random: Random): Promise<string> => {
  const [victim] = some(shims(), random)
  if (victim === undefined) return 'nobody'
  const provider = /"runtime":"(\w+)"/.exec(victim.command)?.[1] ?? 'sandbox'
  // A shim holds several machines.
  const over = world.damage.begin(provider, MAX_MACHINES)
  signal(victim.pid, 'SIGKILL')
  // The daemon notices at once; one that is away itself notices when it is back.
  setTimeout(over, 5000).unref()
  return `pid ${victim.pid} of ${provider}`
}

const fillDisk = async (world: World, random: Random): Promise<string> => {
  const over = world.damage.begin('disk', 0)
  const ms = random.between(500, 4000)
  const file = join(world.directory, 'filling')
  const until = performance.now() + ms
  // Again and again: what others free meanwhile is taken, too.
  while (performance.now() < until) {
    fill(file)
    await sleep(50)
  }
  rmSync(file, { force: true })
  // Whoever was refused may still be on the way to say so.
  setTimeout(over, 3000).unref()
  return `for ${ms.toFixed(0)} ms`
}

const fill = (file: string): void => {
  for (let size = 8 * 2 ** 20; size >= 4096; size = Math.floor(size / 2))
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(size), { flag: 'a' })
      } catch {
        break
      }
    }
}
