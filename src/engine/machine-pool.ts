import { createDeadline } from '../jobs/deadline.ts'
import { poolKindOf } from '../jobs/pool-kind.ts'
import type { MachineRecord, Runtime } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { type Disposal, recordMachine } from './machine-disposal.ts'

export interface Pool {
  /** Boots machines until each pool has its size, and retires machines that are excess or too old. */
  refill(): void
}

/**
 * Keeps machines booted ahead of need. A pool only makes starts faster: a job that finds no pool machine boots its own,
 * and a bad pool machine fails the start, which is retried. A pool machine is claimed in the transaction that claims
 * the job, so it cannot be claimed twice or while it is being retired.
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
      log.warn({ runtime: runtime.name, kind, err: error }, 'cannot boot a pool machine')
      await disposal.dispose(machine)
    }
  }

  const bootOne = (runtime: Runtime, kind: string): void => {
    const key = keyOf(runtime, kind)
    const count = (change: number) => booting.set(key, (booting.get(key) ?? 0) + change)
    count(1)
    boot(runtime, kind)
      .catch(error =>
        context.log.error({ runtime: runtime.name, err: error }, 'cannot record a pool machine'),
      )
      .finally(() => {
        count(-1)
        // The machine that the new one replaces can be retired now.
        retireExcess(runtime).catch(error => logRefillFailure(runtime, error))
      })
  }

  /** Oldest first, the order in which machines are claimed. */
  const idleMachines = async ({ name }: Runtime): Promise<MachineRecord[]> =>
    (await context.store.listMachines()).filter(
      ({ runtime, jobId, state }) => runtime === name && jobId === null && state === 'ready',
    )

  const isOld = ({ poolAgeSeconds = Number.POSITIVE_INFINITY }: Runtime, { createdAt }: MachineRecord) =>
    context.clock.now() - createdAt > poolAgeSeconds * 1000

  const retireExcess = async (runtime: Runtime): Promise<void> => {
    const idle = await idleMachines(runtime)
    const kinds = new Set([...kindsOf(runtime), ...idle.map(poolKindOf)])
    for (const kind of kinds) {
      const wanted = kindsOf(runtime).includes(kind) ? (runtime.poolSize ?? 0) : 0
      const ofKind = idle.filter(machine => poolKindOf(machine) === kind)
      // Retire old machines only when new ones are ready: an old pool machine is better than none.
      for (const machine of ofKind.slice(0, Math.max(0, ofKind.length - wanted)))
        if (await context.store.retireMachine(machine.id)) void disposal.dispose(machine)
    }
  }

  const refillRuntime = async (runtime: Runtime): Promise<void> => {
    const fresh = (await idleMachines(runtime)).filter(machine => !isOld(runtime, machine))
    let complete = true
    for (const kind of kindsOf(runtime)) {
      const available = fresh.filter(machine => poolKindOf(machine) === kind).length
      const missing = (runtime.poolSize ?? 0) - available - (booting.get(keyOf(runtime, kind)) ?? 0)
      for (let i = 0; i < missing; i++) bootOne(runtime, kind)
      complete &&= missing <= 0
    }
    if (complete) await retireExcess(runtime)
  }

  const logRefillFailure = (runtime: Runtime, error: unknown): void => {
    if (!context.closing.aborted)
      context.log.warn({ runtime: runtime.name, err: error }, 'cannot refill the pool')
  }

  return {
    refill: () => {
      if (context.closing.aborted) return
      for (const runtime of context.runtimes.values())
        if (runtime.poolSize !== undefined)
          refillRuntime(runtime).catch(error => logRefillFailure(runtime, error))
    },
  }
}

const kindsOf = ({ poolKinds = [''] }: Runtime): readonly string[] => poolKinds

const keyOf = ({ name }: Runtime, kind: string): string => `${name} ${kind}`
