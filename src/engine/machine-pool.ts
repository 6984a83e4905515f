import { createDeadline } from '../jobs/deadline.ts'
import { poolKindOf } from '../jobs/pool-kind.ts'
import type { MachineRecord, Runtime } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { type Disposal, recordMachine } from './machine-disposal.ts'

export interface Pool {
  /** Boots machines until as many wait as the runtimes want, and lets go of those that are too many or too old. */
  refill(): void
}

/**
 * Machines booted ahead of need. A pool only makes starts faster: a job that finds none waits for a cold one, and
 * a waiting machine that turns out bad fails its start, which is tried again. Claiming one is part of the claim of
 * the job (one transaction), so that no machine can be given away twice, nor while it is being retired.
 */
export const createPool = (context: EngineContext, disposal: Disposal): Pool => {
  const booting = new Map<string, number>()

  const boot = async (runtime: Runtime, kind: string): Promise<void> => {
    const { store, log } = context
    let details: Record<string, unknown> = { kind }
    const machine = await recordMachine(context, runtime, { details })
    const { id } = machine
    const deadline = createDeadline([context.closing], context.config.supervision.provisioning * 1000)
    try {
      const remember = (more: Record<string, unknown>) => {
        details = { ...details, ...more }
        return store.updateMachine(id, { details })
      }
      await runtime.provision({ machine, kind, remember, signal: deadline.signal }).finally(deadline.clear)
      await store.updateMachine(id, { state: 'ready' })
    } catch (error) {
      if (context.closing.aborted) return
      log.warn({ runtime: runtime.name, kind, err: error }, 'a machine of the pool could not be booted')
      await disposal.dispose(machine)
    }
  }

  const bootOne = (runtime: Runtime, kind: string): void => {
    const key = keyOf(runtime, kind)
    const count = (change: number) => booting.set(key, (booting.get(key) ?? 0) + change)
    count(1)
    boot(runtime, kind)
      .catch(error => context.log.error({ runtime: runtime.name, err: error }, 'a machine was not recorded'))
      .finally(() => {
        count(-1)
        // The one it was made to replace may go now.
        retireSpare(runtime).catch(error => notTended(runtime, error))
      })
  }

  /** The oldest first, as they are claimed. */
  const waitingFor = async ({ name }: Runtime): Promise<MachineRecord[]> =>
    (await context.store.listMachines()).filter(
      ({ runtime, jobId, state }) => runtime === name && jobId === null && state === 'ready',
    )

  const isOld = ({ poolAgeSeconds = Number.POSITIVE_INFINITY }: Runtime, { createdAt }: MachineRecord) =>
    context.clock.now() - createdAt > poolAgeSeconds * 1000

  const retireSpare = async (runtime: Runtime): Promise<void> => {
    const waiting = await waitingFor(runtime)
    const kinds = new Set([...kindsOf(runtime), ...waiting.map(poolKindOf)])
    for (const kind of kinds) {
      const wanted = kindsOf(runtime).includes(kind) ? (runtime.poolSize ?? 0) : 0
      const own = waiting.filter(machine => poolKindOf(machine) === kind)
      // Old ones go only when there are new ones: while none can be booted, an old one is better than none.
      for (const machine of own.slice(0, Math.max(0, own.length - wanted)))
        if (await context.store.retireMachine(machine.id)) void disposal.dispose(machine)
    }
  }

  const tend = async (runtime: Runtime): Promise<void> => {
    const fresh = (await waitingFor(runtime)).filter(machine => !isOld(runtime, machine))
    let complete = true
    for (const kind of kindsOf(runtime)) {
      const there = fresh.filter(machine => poolKindOf(machine) === kind).length
      const missing = (runtime.poolSize ?? 0) - there - (booting.get(keyOf(runtime, kind)) ?? 0)
      for (let i = 0; i < missing; i++) bootOne(runtime, kind)
      complete &&= missing <= 0
    }
    if (complete) await retireSpare(runtime)
  }

  const notTended = (runtime: Runtime, error: unknown): void => {
    if (!context.closing.aborted)
      context.log.warn({ runtime: runtime.name, err: error }, 'the pool was not filled')
  }

  return {
    refill: () => {
      if (context.closing.aborted) return
      for (const runtime of context.runtimes.values())
        if (runtime.poolSize !== undefined) tend(runtime).catch(error => notTended(runtime, error))
    },
  }
}

const kindsOf = ({ poolKinds = [''] }: Runtime): readonly string[] => poolKinds

const keyOf = ({ name }: Runtime, kind: string): string => `${name} ${kind}`
