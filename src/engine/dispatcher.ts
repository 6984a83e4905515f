import { BATCH } from '../jobs/batch-command.ts'
import { newId } from '../jobs/ids.ts'
import type { Provider } from '../ports.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'

/** Claims pending jobs while their provider has a free slot. */
export interface Dispatcher {
  /** Nothing is claimed before the start: recovery would mistake a newly claimed job for one of the previous daemon. */
  start(): void
  /**
   * Checks the queues soon; cheap, so call it whenever something may have changed. Pass a provider when a job for it is
   * being inserted in the current turn of the event loop: the claim then shares the transaction of the insert.
   */
  wake(runtime?: string): void
  /** Resolves when the current check of the queues has ended. */
  idle(): Promise<void>
}

/** Retries become due without an event, so the queues are also checked at this interval. */
const POLL_MS = 500

/** Batches only wait for their jobs; the limit bounds how many of these are submitted at once. */
const BATCH_SLOTS = 100

export const createDispatcher = (context: EngineContext, activeJobs: () => ActiveJobs): Dispatcher => {
  let polling: Promise<void> | undefined
  let again = false
  let started = false

  const fill = async (provider: Provider, isInserting = false): Promise<void> => {
    const { store, clock } = context
    const { name } = provider
    // A provider that lost all its slots still gets jobs, one at a time: `create` says why they cannot run.
    const hasRoom = (): boolean =>
      !context.closing.aborted && activeJobs().count(name) < Math.max(1, provider.slots)
    for (let first = isInserting; hasRoom() && (first || (await store.hasPending(name))); first = false) {
      const claimed = await store.claim({
        runtime: name,
        machineId: newId(clock.now()),
        ...(provider.pool && { poolKind: provider.pool.kindFor }),
        now: clock.now(),
      })
      if (claimed === undefined) return
      const { job, manifest, machine } = claimed
      context.fault('claimed')
      context.changes.emit({ jobId: job.id, kind: 'state' })
      void activeJobs().run(job, manifest, machine, 'start')
    }
  }

  const fillBatches = async (): Promise<void> => {
    const { store, clock, closing } = context
    while (!closing.aborted && activeJobs().count(BATCH) < BATCH_SLOTS && (await store.hasPending(BATCH))) {
      const claimed = await store.claimBatch(clock.now())
      if (claimed === undefined) return
      const { job, manifest } = claimed
      context.fault('claimed')
      context.changes.emit({ jobId: job.id, kind: 'state' })
      void activeJobs().runBatch(job, manifest, 'start')
    }
  }

  const poll = async (inserting: Provider | undefined): Promise<void> => {
    if (inserting) await fill(inserting, true)
    do {
      again = false
      await Promise.all([fillBatches(), ...[...context.providers.values()].map(provider => fill(provider))])
    } while (again && !context.closing.aborted)
  }

  const wake: Dispatcher['wake'] = name => {
    if (!started || context.closing.aborted) return
    if (polling !== undefined) {
      again = true
      return
    }
    polling = poll(name === undefined ? undefined : context.providers.get(name))
      .catch(error => context.log.error({ err: error }, 'cannot claim jobs'))
      .finally(() => {
        polling = undefined
      })
  }

  const start = (): void => {
    started = true
    const timer = setInterval(() => wake(), POLL_MS)
    context.closing.addEventListener('abort', () => clearInterval(timer), { once: true })
    wake()
  }

  return { start, wake, idle: async () => polling }
}
