import { newId } from '../jobs/ids.ts'
import type { Reservation, Runtime } from '../ports.ts'
import type { Runner } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'

/** Takes pending jobs while their runtime has room. */
export interface Dispatcher {
  /** Nothing is claimed before: a job claimed during recovery would be taken for one of the previous daemon. */
  start(): void
  /**
   * Looks at the queues soon; cheap, call it whenever something may have changed. With the name of a runtime: a job
   * for it is being written in this very turn, and is claimed in the same transaction where there is room.
   */
  kick(runtime?: string): void
  /** Resolves when the look under way is over. */
  idle(): Promise<void>
}

/** Retries become due without anybody telling. */
const LOOK_MS = 500

export const createDispatcher = (context: EngineContext, runner: () => Runner): Dispatcher => {
  let looking: Promise<void> | undefined
  let again = false
  let started = false

  const fill = async (runtime: Runtime, isComing = false): Promise<void> => {
    const { store, clock } = context
    const { name } = runtime
    const hasRoom = (): boolean => !context.closing.aborted && runner().running(name) < runtime.limit
    for (let first = isComing; hasRoom() && (first || store.waiting(name) > 0); first = false) {
      const machineId = newId(clock.now())
      let reserved: Reservation | undefined
      const claimed = await store
        .claim({
          runtime: name,
          machineId,
          ...(runtime.poolKind && { poolKind: runtime.poolKind }),
          ...(runtime.reserve && {
            reserve: request => {
              // A claim that is made again was undone.
              reserved?.release()
              reserved = runtime.reserve?.(request)
              return reserved?.details
            },
          }),
          now: clock.now(),
        })
        .catch((error: unknown) => {
          reserved?.release()
          throw error
        })
      if (claimed?.machine.id !== machineId) reserved?.release()
      if (claimed === undefined) return
      const { job, machine } = claimed
      context.fault('claimed')
      context.signals.emit({ jobId: job.id, kind: 'state' })
      const manifest = await store.getManifest(job.id)
      if (manifest !== undefined) void runner().run(job, manifest, machine, 'start')
    }
  }

  const look = async (coming: Runtime | undefined): Promise<void> => {
    if (coming) await fill(coming, true)
    do {
      again = false
      await Promise.all([...context.runtimes.values()].map(runtime => fill(runtime)))
    } while (again && !context.closing.aborted)
  }

  const kick: Dispatcher['kick'] = name => {
    if (!started || context.closing.aborted) return
    if (looking !== undefined) {
      again = true
      return
    }
    looking = look(name === undefined ? undefined : context.runtimes.get(name))
      .catch(error => context.log.error({ err: error }, 'the queue could not be read'))
      .finally(() => {
        looking = undefined
      })
  }

  const start = (): void => {
    started = true
    const timer = setInterval(() => kick(), LOOK_MS)
    context.closing.addEventListener('abort', () => clearInterval(timer), { once: true })
    kick()
  }

  return { start, kick, idle: async () => looking }
}
