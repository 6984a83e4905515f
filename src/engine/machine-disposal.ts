import { type AppError, messageWithHint, toAppError } from '../jobs/errors.ts'
import { newId } from '../jobs/ids.ts'
import { isLeftoverError } from '../jobs/leftover-error.ts'
import { isOperatorError } from '../jobs/operator-error.ts'
import type { MachineRecord, Provider } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { retryWrite } from './retry-write.ts'

/**
 * Destroys machines. A record is deleted only after the provider confirms that the machine is gone or can never be
 * destroyed.
 */
export interface Disposal {
  /** Marks the machine and destroys it; false when that failed and the sweeper will retry. */
  dispose(machine: MachineRecord): Promise<boolean>
  /** Resolves when no destruction is in progress. */
  idle(): Promise<void>
}

export const createDisposal = (context: EngineContext): Disposal => {
  const inProgress = new Map<string, Promise<boolean>>()

  const postpone = async (machine: MachineRecord, error: AppError): Promise<void> => {
    const { store, clock, log } = context
    const attempts = machine.attempts + 1
    const needsOperator = isOperatorError(error)
    const fields = { machine: machine.id, runtime: machine.runtime, attempts, err: error }
    if (needsOperator) log.error(fields, 'cannot destroy a machine; the operator must act')
    else log.warn(fields, 'cannot destroy a machine; will retry')
    await retryWrite(context, () =>
      store.updateMachine(machine.id, {
        attempts,
        lastError: messageWithHint(error),
        notBefore:
          needsOperator && attempts >= MAX_OPERATOR_ATTEMPTS ? NEVER : clock.now() + backoff(attempts),
      }),
    )
  }

  const destroy = async (machine: MachineRecord): Promise<boolean> => {
    const { store, clock, log, fault } = context
    const provider = context.providers.get(machine.runtime)
    if (provider === undefined) {
      log.warn(
        { machine: machine.id, runtime: machine.runtime },
        'cannot destroy a machine: its runtime is no longer configured',
      )
      return false
    }
    const began = clock.monotonic()
    const current =
      machine.state === 'destroying'
        ? machine
        : ((await retryWrite(context, () => store.markDestroying(machine.id))) ?? machine)
    fault('destroying')
    let leftBehind: string | undefined
    try {
      await provider.destroy(current, context.closing)
    } catch (thrown) {
      if (context.closing.aborted) return false
      const error = toAppError(thrown)
      if (!isLeftoverError(error)) {
        await postpone(current, error)
        return false
      }
      leftBehind = error.message
      log.error(
        { machine: machine.id, runtime: machine.runtime, err: error },
        'a machine can never be destroyed; its record is deleted',
      )
    }
    fault('destroyed')
    const { jobId } = current
    const phases = { destroy: Math.round(clock.monotonic() - began) }
    const event = {
      type: 'machine' as const,
      at: clock.now(),
      data: { machine: machine.id, gone: leftBehind === undefined, ...(leftBehind && { left: leftBehind }) },
    }
    await retryWrite(context, () =>
      store.deleteMachine(machine.id, jobId === null ? undefined : { jobId, phases, event }),
    )
    if (jobId !== null) context.changes.emit({ jobId, kind: 'state' })
    return true
  }

  return {
    dispose: machine => {
      const running = inProgress.get(machine.id)
      if (running !== undefined) return running
      const promise = destroy(machine).finally(() => inProgress.delete(machine.id))
      inProgress.set(machine.id, promise)
      return promise
    },
    idle: async () => {
      await Promise.allSettled(inProgress.values())
    },
  }
}

/** Records a machine without a job: for the pool, for a probe, or an orphan. */
export const recordMachine = async (
  { store, clock }: EngineContext,
  { name }: Provider,
  known: Partial<Pick<MachineRecord, 'id' | 'details' | 'state'>> = {},
): Promise<MachineRecord> => {
  const machine = {
    id: newId(clock.now()),
    runtime: name,
    jobId: null,
    details: {},
    state: 'creating' as const,
    createdAt: clock.now(),
    leaseUntil: null,
    attempts: 0,
    notBefore: 0,
    lastError: null,
    ...known,
  }
  await store.insertMachine(machine)
  return { ...machine, daemon: store.daemon }
}

/** From one second to five minutes, so that an unavailable provider is neither flooded nor forgotten. */
const backoff = (attempts: number): number => Math.min(300_000, 1000 * 2 ** Math.min(attempts, 9))

/**
 * About an hour of attempts, because a lock may belong to a long backup. Then only the next daemon or the user retries.
 */
const MAX_OPERATOR_ATTEMPTS = 20
const NEVER = Number.MAX_SAFE_INTEGER

/** Whether to retry a failed destruction. The upper bound limits the delay when the wall clock was set back. */
export const isDue = ({ notBefore }: MachineRecord, now: number): boolean =>
  notBefore !== NEVER && (notBefore <= now || notBefore > now + 300_000)
