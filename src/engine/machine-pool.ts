import { createDeadline } from '../jobs/deadline.ts'
import { poolKindOf } from '../jobs/pool-kind.ts'
import type { MachineRecord, Provider } from '../ports.ts'
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

  const boot = async (provider: Provider, kind: string): Promise<void> => {
    const { store, log } = context
    let details: Record<string, unknown> = { kind }
    const machine = await recordMachine(context, provider, { details })
    const { id } = machine
    const deadline = createDeadline([context.closing], context.config.supervision.provisioning * 1000)
    try {
      const remember = (more: Record<string, unknown>) => {
        details = { ...details, ...more }
        return store.updateMachine(id, { details })
      }
      await provider.create({ machine, kind, remember, signal: deadline.signal }).finally(deadline.clear)
      await store.updateMachine(id, { state: 'ready' })
    } catch (error) {
      if (context.closing.aborted) return
      log.warn({ runtime: provider.name, kind, err: error }, 'cannot boot a pool machine')
      await disposal.dispose(machine)
    }
  }

  const bootOne = (provider: Provider, kind: string): void => {
    const key = keyOf(provider, kind)
    const count = (change: number) => booting.set(key, (booting.get(key) ?? 0) + change)
    count(1)
    boot(provider, kind)
      .catch(error =>
        context.log.error({ runtime: provider.name, err: error }, 'cannot record a pool machine'),
      )
      .finally(() => {
        count(-1)
        // The machine that the new one replaces can be retired now.
        retireExcess(provider).catch(error => logRefillFailure(provider, error))
      })
  }

  /** Oldest first, the order in which machines are claimed. */
  const idleMachines = async ({ name }: Provider): Promise<MachineRecord[]> =>
    (await context.store.ownMachines()).filter(
      ({ runtime, jobId, state }) => runtime === name && jobId === null && state === 'ready',
    )

  const isOld = ({ pool }: Provider, { createdAt }: MachineRecord): boolean =>
    context.clock.now() - createdAt > (pool?.ageSeconds ?? Number.POSITIVE_INFINITY) * 1000

  const retireExcess = async (provider: Provider): Promise<void> => {
    const idle = await idleMachines(provider)
    const kinds = new Set([...kindsOf(provider), ...idle.map(poolKindOf)])
    for (const kind of kinds) {
      const wanted = kindsOf(provider).includes(kind) ? (provider.pool?.size ?? 0) : 0
      const ofKind = idle.filter(machine => poolKindOf(machine) === kind)
      // Retire old machines only when new ones are ready: an old pool machine is better than none.
      for (const machine of ofKind.slice(0, Math.max(0, ofKind.length - wanted)))
        if (await context.store.markIdleDestroying(machine.id)) void disposal.dispose(machine)
    }
  }

  const refillProvider = async (provider: Provider): Promise<void> => {
    const fresh = (await idleMachines(provider)).filter(machine => !isOld(provider, machine))
    let complete = true
    for (const kind of kindsOf(provider)) {
      const available = fresh.filter(machine => poolKindOf(machine) === kind).length
      const missing = (provider.pool?.size ?? 0) - available - (booting.get(keyOf(provider, kind)) ?? 0)
      for (let i = 0; i < missing; i++) bootOne(provider, kind)
      complete &&= missing <= 0
    }
    if (complete) await retireExcess(provider)
  }

  const logRefillFailure = (provider: Provider, error: unknown): void => {
    if (!context.closing.aborted)
      context.log.warn({ runtime: provider.name, err: error }, 'cannot refill the pool')
  }

  return {
    refill: () => {
      if (context.closing.aborted) return
      for (const provider of context.providers.values())
        if (provider.pool !== undefined)
          refillProvider(provider).catch(error => logRefillFailure(provider, error))
    },
  }
}

const kindsOf = ({ pool }: Provider): readonly string[] => pool?.kinds ?? []

const keyOf = ({ name }: Provider, kind: string): string => `${name} ${kind}`
