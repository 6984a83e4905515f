import { createDeadline } from '../jobs/deadline.ts'
import { newId } from '../jobs/ids.ts'
import type { Runtime } from '../ports.ts'
import type { EngineContext } from './context.ts'
import type { Disposal } from './machines.ts'

export interface Pool {
  /** Boots machines until as many wait as the runtimes want. */
  refill(): void
}

/**
 * Machines booted ahead of need. A pool only makes starts faster: a job that finds none waits for a cold one, and
 * a waiting machine that turns out bad fails its start, which is tried again. Claiming one is part of the claim of
 * the job (one transaction), so that no machine can be given away twice.
 */
export const createPool = (context: EngineContext, disposal: Disposal): Pool => {
  const booting = new Map<string, number>()

  const boot = async (runtime: Runtime): Promise<void> => {
    const { store, clock, log } = context
    const id = newId(clock.now())
    const machine = { id, runtime: runtime.name, jobId: null, details: {} }
    await store.insertMachine({
      ...machine,
      state: 'creating',
      createdAt: clock.now(),
      leaseUntil: null,
      attempts: 0,
      notBefore: 0,
      lastError: null,
    })
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

  const fill = async (runtime: Runtime): Promise<void> => {
    const machines = await context.store.listMachines()
    const waiting = machines.filter(
      m => m.runtime === runtime.name && m.jobId === null && m.state === 'ready',
    ).length
    const under = booting.get(runtime.name) ?? 0
    const missing = (runtime.poolSize ?? 0) - waiting - under
    for (let i = 0; i < missing; i++) {
      booting.set(runtime.name, (booting.get(runtime.name) ?? 0) + 1)
      void boot(runtime).finally(() => booting.set(runtime.name, (booting.get(runtime.name) ?? 1) - 1))
    }
  }

  return {
    refill: () => {
      for (const runtime of context.runtimes.values())
        if ((runtime.poolSize ?? 0) > 0)
          fill(runtime).catch(error =>
            context.log.warn({ runtime: runtime.name, err: error }, 'the pool was not filled'),
          )
    },
  }
}
