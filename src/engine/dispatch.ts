import { newId } from '../jobs/ids.ts'
import type { Runtime } from '../ports.ts'
import type { EngineContext } from './context.ts'
import type { Runner } from './runner.ts'

/** Takes pending jobs while their runtime has room. */
export interface Dispatcher {
  /** Looks at the queues soon; cheap, call it whenever something may have changed. */
  kick(): void
  /** Resolves when the look under way is over. */
  idle(): Promise<void>
}

/** Retries become due without anybody telling. */
const LOOK_MS = 500

export const createDispatcher = (context: EngineContext, runner: () => Runner): Dispatcher => {
  let looking: Promise<void> | undefined
  let again = false

  const fill = async (runtime: Runtime): Promise<void> => {
    const { store, clock } = context
    const { name } = runtime
    while (!context.closing.aborted && store.waiting(name) > 0 && runner().running(name) < runtime.limit) {
      const claimed = await store.claim({
        runtime: name,
        machineId: newId(clock.now()),
        ...(runtime.poolKind && { poolKind: runtime.poolKind }),
        now: clock.now(),
      })
      if (claimed === undefined) return
      const { job, machine } = claimed
      context.fault('claimed')
      context.signals.emit({ jobId: job.id, kind: 'state' })
      const manifest = await store.getManifest(job.id)
      if (manifest !== undefined) void runner().run(job, manifest, machine, 'start')
    }
  }

  const look = async (): Promise<void> => {
    do {
      again = false
      await Promise.all([...context.runtimes.values()].map(fill))
    } while (again && !context.closing.aborted)
  }

  const kick = (): void => {
    if (context.closing.aborted) return
    if (looking !== undefined) {
      again = true
      return
    }
    looking = look()
      .catch(error => context.log.error({ err: error }, 'the queue could not be read'))
      .finally(() => {
        looking = undefined
      })
  }

  const timer = setInterval(kick, LOOK_MS)
  context.closing.addEventListener('abort', () => clearInterval(timer), { once: true })
  return { kick, idle: async () => looking }
}
