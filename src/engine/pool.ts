import { createDeadline } from '../jobs/deadline.ts'
import type { MachineRecord, Runtime } from '../ports.ts'
import type { EngineContext } from './context.ts'
import { type Disposal, recordMachine } from './machines.ts'

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

  const boot = async (runtime: Runtime): Promise<void> => {
    const { store, log } = context
    const machine = await recordMachine(context, runtime)
    const { id } = machine
    const deadline = createDeadline([context.closing], context.config.supervision.provisioning * 1000)
    try {
      let known: Record<string, unknown> = {}
      const remember = (details: Record<string, unknown>) => {
        known = { ...known, ...details }
        return store.updateMachine(id, { details: known })
      }
      await runtime.provision({ machine, remember, signal: deadline.signal }).finally(deadline.clear)
      await store.updateMachine(id, { state: 'ready' })
    } catch (error) {
      if (context.closing.aborted) return
      log.warn({ runtime: runtime.name, err: error }, 'a machine of the pool could not be booted')
      await disposal.dispose(machine)
    }
  }

  const bootOne = (runtime: Runtime): void => {
    const count = (change: number) => booting.set(runtime.name, (booting.get(runtime.name) ?? 0) + change)
    count(1)
    boot(runtime)
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
    // Old ones go only when there are new ones: while none can be booted, an old one is better than none.
    for (const machine of waiting.slice(0, Math.max(0, waiting.length - (runtime.poolSize ?? 0))))
      if (await context.store.retireMachine(machine.id)) void disposal.dispose(machine)
  }

  const tend = async (runtime: Runtime): Promise<void> => {
    const fresh = (await waitingFor(runtime)).filter(machine => !isOld(runtime, machine)).length
    const missing = (runtime.poolSize ?? 0) - fresh - (booting.get(runtime.name) ?? 0)
    for (let i = 0; i < missing; i++) bootOne(runtime)
    if (missing <= 0) await retireSpare(runtime)
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
