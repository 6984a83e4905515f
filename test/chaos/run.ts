import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, connect } from '../../src/client/daemon-client.ts'
import { AppError } from '../../src/jobs/errors.ts'
import { checkJob, type Ending } from './check.ts'
import { checkClean, checkStopped } from './clean.ts'
import { commonFaults } from './faults.ts'
import { keepDaemon } from './keeper.ts'
import { mounts } from './leftovers.ts'
import { patiently } from './patience.ts'
import { type Plan, planJob } from './plan.ts'
import { PROVIDERS } from './providers/index.ts'
import type { OpenProvider, Provider } from './providers/provider.ts'
import { createRandom, type Random } from './random.ts'
import { carryOut, planStrikes, type Strike } from './schedule.ts'
import { submitJob } from './submit.ts'
import { createWorld, type World, writeConfig } from './world.ts'

export interface ChaosOptions {
  readonly seed: number
  readonly minutes: number
  /** Ends the run when so many are handed over; 0: the time does. */
  readonly jobs: number
  readonly kept: string
  /** Names of providers; empty: all that work here, with Docker as the engine of containers. */
  readonly only: readonly string[]
}

/** How many jobs are under way at most. */
const AT_ONCE = 8
const SETTLE_MS = 180_000

/** Returns the exit status. */
export const runChaos = async ({ seed, minutes, jobs, kept, only }: ChaosOptions): Promise<number> => {
  const world = createWorld(kept)
  const random = createRandom(seed)
  const open = await openProviders(world, only)
  writeConfig(
    world,
    [...open.values()].map(({ config = {} }) => config),
  )
  for (const { env = {} } of open.values()) Object.assign(world.env, env)
  const before = mounts()
  const keeper = keepDaemon(world)
  const client = connect(world.home, { origin: 'chaos' })
  await patiently(() => client.daemon(), AbortSignal.timeout(30_000))

  const faults = [...commonFaults(world, keeper), ...[...open.values()].flatMap(one => one.faults)]
  const strikes = planStrikes(random.fork(), faults, minutes * 60_000)
  const until = performance.now() + minutes * 60_000
  const enough = new AbortController()
  const striking = carryOut(strikes, world.journal, enough.signal)
  const endFaults = (): Promise<Strike[]> => {
    if (jobs > 0) enough.abort()
    return striking
  }
  const endings = await submitUntil({ world, client, open, random: random.fork(), until, jobs, endFaults })
  if (endings.size < jobs)
    world.journal.violation(`only ${endings.size} of ${jobs} jobs were handed over in ${minutes} minutes`)

  await checkRuns(world, endings)
  await checkClean({ world, client, open })
  client.close()
  keeper.close()
  await checkStopped({ world, open, before })
  // After a failure everything stays as it is for whoever looks; its processes end with the namespace.
  if (world.journal.violations.length === 0) for (const provider of open.values()) await provider.close()
  report({ world, seed, strikes: await striking, endings })
  return world.journal.violations.length === 0 ? 0 : 1
}

const wanted = (only: readonly string[]): Provider[] => {
  const names = PROVIDERS.map(({ name }) => name)
  const unknown = only.find(name => !names.includes(name))
  if (unknown !== undefined) throw new Error(`unknown provider '${unknown}': use ${names.join(', ')}`)
  return PROVIDERS.filter(({ name, onlyByName }) => (only.length === 0 ? !onlyByName : only.includes(name)))
}

const openProviders = async (
  world: World,
  only: readonly string[],
): Promise<ReadonlyMap<string, OpenProvider>> => {
  const open = new Map<string, OpenProvider>()
  for (const provider of wanted(only)) {
    const missing = provider.missing()
    if (missing === undefined) open.set(provider.name, await provider.open(world))
    else if (process.env.DEPUTY_REQUIRE_E2E) world.journal.violation(`${provider.name}: ${missing}`)
    else say(`left out: ${provider.name}: ${missing}`)
  }
  return open
}

type Endings = ReadonlyMap<Plan, Ending | 'unknown'>

/** Hands over jobs until the time is over or there are enough, then waits for all of them. */
const submitUntil = async (options: {
  world: World
  client: Client
  open: ReadonlyMap<string, OpenProvider>
  random: Random
  until: number
  jobs: number
  endFaults: () => Promise<unknown>
}): Promise<Endings> => {
  const { world, client, open, random, until, jobs } = options
  const late = new AbortController()
  const endings = new Map<Plan, Ending | 'unknown'>()
  const underWay = new Set<Promise<void>>()

  const handle = async (plan: Plan, choices: Random): Promise<void> => {
    const from = performance.now()
    endings.set(plan, 'unknown')
    try {
      const id = await submitJob({ world, client, plan, random: choices, signal: late.signal })
      world.journal.note(`job ${plan.key} ${id} is acknowledged: ${plan.provider} ${plan.kind}`)
      endings.set(plan, await checkJob({ world, client, plan, id, from, signal: late.signal }))
      if (choices.chance(0.5)) await patiently(() => client.delete(id), late.signal).catch(ignoreGone)
    } catch (error) {
      world.journal.violation(`${plan.provider} ${plan.kind} ${plan.key}: ${(error as Error).message}`)
    }
  }

  for (let number = 1; performance.now() < until && (jobs === 0 || number <= jobs); number++) {
    const [provider, { place, entry = world.ledger.entry }] = random.pick([...open])
    const key = `k${number}`
    const plan = planJob({ key, provider, place: place(random), entry: entry(key), random })
    const done: Promise<void> = handle(plan, random.fork()).finally(() => underWay.delete(done))
    underWay.add(done)
    if (underWay.size >= AT_ONCE) await Promise.race([...underWay, sleep(until - performance.now())])
    await sleep(random.between(20, 300))
  }
  await options.endFaults()
  world.journal.note('all faults are over')
  const timer = setTimeout(() => late.abort(), SETTLE_MS)
  await Promise.all(underWay)
  clearTimeout(timer)
  return endings
}

/** The daemon that deleted it died before it could answer. */
const ignoreGone = (error: unknown): void => {
  if (!(error instanceof AppError && error.code === 'not_found')) throw error
}

/** At most one run for each job, exactly one for each that ended as planned, and no more losses than faults. */
const checkRuns = async ({ ledger, journal, damage }: World, endings: Endings): Promise<void> => {
  const runs = ledger.runs()
  for (const [plan, ending] of endings) {
    const count = runs.get(plan.key) ?? 0
    if (count > 1) journal.violation(`${plan.provider} ${plan.kind} ${plan.key} ran ${count} times`)
    if (ending === 'planned' && plan.exitCode !== null && count === 0)
      journal.violation(`${plan.provider} ${plan.kind} ${plan.key} ended well without having run`)
  }
  for (const provider of new Set([...endings.keys()].map(plan => plan.provider))) {
    const lost = [...endings].filter(([plan, ending]) => plan.provider === provider && ending === 'lost')
    if (lost.length > damage.losses(provider))
      journal.violation(`${lost.length} jobs of ${provider} were lost, ${damage.losses(provider)} could be`)
  }
}

const report = (options: {
  world: World
  seed: number
  strikes: readonly Strike[]
  endings: Endings
}): void => {
  const { world, seed, strikes, endings } = options
  const { violations } = world.journal
  const providers = [...new Set([...endings.keys()].map(plan => plan.provider))]
  for (const provider of providers) {
    const own = [...endings].filter(([plan]) => plan.provider === provider)
    const lost = own.filter(([, ending]) => ending === 'lost').length
    say(`${provider}: ${own.length} jobs, ${lost} lost to faults that may lose one`)
  }
  say(`faults: ${count(strikes.map(({ fault }) => fault.name))}`)
  if (violations.length === 0) {
    say(`seed ${seed}: everything held`)
    return
  }
  say('schedule:')
  for (const { atMs, fault } of strikes) say(`  ${(atMs / 1000).toFixed(2).padStart(7)} s ${fault.name}`)
  say(`seed ${seed}: ${violations.length} broken promises`)
  for (const text of violations) say(`  - ${text}`)
}

const count = (names: readonly string[]): string =>
  [...new Set(names)]
    .sort()
    .map(name => `${names.filter(other => other === name).length} ${name}`)
    .join(', ')

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}
