import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from './fault.ts'
import type { Journal } from './journal.ts'
import type { Random } from './random.ts'

export interface Strike {
  readonly atMs: number
  readonly fault: Fault
  readonly random: Random
}

/** All faults of a run, known before it begins. Faults may overlap. */
export const planStrikes = (random: Random, faults: readonly Fault[], lengthMs: number): Strike[] => {
  const strikes: Strike[] = []
  // The first jobs run undisturbed: a run that proves nothing else shows that the driver works.
  for (let atMs = 2000; atMs < lengthMs; atMs += random.between(200, 4000))
    strikes.push({ atMs, fault: random.weighted(faults), random: random.fork() })
  return strikes
}

/** Resolves with those that struck, all of them or those before the signal, when everything they did is undone. */
export const carryOut = async (
  strikes: readonly Strike[],
  journal: Journal,
  signal: AbortSignal,
): Promise<Strike[]> => {
  const began = performance.now()
  const struck: Strike[] = []
  const underWay: Promise<void>[] = []
  const busy = new Map<string, Promise<void>>()
  for (const strike of strikes) {
    const { atMs, fault, random } = strike
    await sleep(Math.max(0, atMs - (performance.now() - began)), undefined, { signal }).catch(() => {})
    if (signal.aborted) break
    struck.push(strike)
    const { name, target = '' } = fault
    const earlier = target === '' ? undefined : busy.get(target)
    const done = (async () => {
      await earlier
      journal.note(`fault ${name}`)
      const hit = await fault.strike(random)
      journal.note(`fault ${name} over: ${hit}`)
    })().catch(error => journal.violation(`the fault ${name} could not be carried out: ${error}`))
    busy.set(target, done)
    underWay.push(done)
  }
  await Promise.all(underWay)
  return struck
}
