import { type AppError, messageWithHint, toAppError } from '../jobs/errors.ts'
import { newId } from '../jobs/ids.ts'
import { isLeftoverError } from '../jobs/leftover-error.ts'
import { isOperatorError } from '../jobs/operator-error.ts'
import type { MachineRecord, Runtime } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { durably } from './retry-write.ts'

/** Machines on their way out. A record goes only after the runtime has said that the machine is gone, or can never be. */
export interface Disposal {
  /** Marks and destroys; false when it failed and will be tried again by the sweep. */
  dispose(machine: MachineRecord): Promise<boolean>
  /** Resolves when no destruction is under way. */
  idle(): Promise<void>
}

export const createDisposal = (context: EngineContext): Disposal => {
  const underWay = new Map<string, Promise<boolean>>()

  const postpone = async (machine: MachineRecord, error: AppError): Promise<void> => {
    const { store, clock, log } = context
    const attempts = machine.attempts + 1
    const waits = isOperatorError(error)
    const fields = { machine: machine.id, runtime: machine.runtime, attempts, err: error }
    if (waits) log.error(fields, 'a machine waits for the operator')
    else log.warn(fields, 'a machine could not be destroyed')
    await durably(context, () =>
      store.updateMachine(machine.id, {
        attempts,
        lastError: messageWithHint(error),
        notBefore: waits && attempts >= MOST_FOR_OPERATOR ? NEVER : clock.now() + backoff(attempts),
      }),
    )
  }

  const destroy = async (machine: MachineRecord): Promise<boolean> => {
    const { store, clock, log, fault } = context
    const runtime = context.runtimes.get(machine.runtime)
    if (runtime === undefined) {
      log.warn(
        { machine: machine.id, runtime: machine.runtime },
        'a machine of a runtime that is not configured any more',
      )
      return false
    }
    const began = clock.monotonic()
    const current =
      machine.state === 'destroying'
        ? machine
        : ((await durably(context, () => store.condemnMachine(machine.id))) ?? machine)
    fault('destroying')
    let left: string | undefined
    try {
      await runtime.destroy(current, context.closing)
    } catch (thrown) {
      if (context.closing.aborted) return false
      const error = toAppError(thrown)
      if (!isLeftoverError(error)) {
        await postpone(current, error)
        return false
      }
      left = error.message
      log.error({ machine: machine.id, runtime: machine.runtime, err: error }, 'a machine was left behind')
    }
    fault('destroyed')
    const { jobId } = current
    const phases = { destroy: Math.round(clock.monotonic() - began) }
    const event = {
      type: 'machine' as const,
      at: clock.now(),
      data: { machine: machine.id, gone: left === undefined, ...(left && { left }) },
    }
    await durably(context, () =>
      store.forgetMachine(machine.id, jobId === null ? undefined : { jobId, phases, event }),
    )
    if (jobId !== null) context.signals.emit({ jobId, kind: 'state' })
    return true
  }

  return {
    dispose: machine => {
      const running = underWay.get(machine.id)
      if (running !== undefined) return running
      const promise = destroy(machine).finally(() => underWay.delete(machine.id))
      underWay.set(machine.id, promise)
      return promise
    },
    idle: async () => {
      await Promise.allSettled(underWay.values())
    },
  }
}

/** A record without a job: of a machine that is to wait in a pool or to try things out, or that was found. */
export const recordMachine = async (
  { store, clock }: EngineContext,
  { name }: Runtime,
  known: Partial<Pick<MachineRecord, 'id' | 'details' | 'state'>> = {},
): Promise<MachineRecord> => {
  const machine: MachineRecord = {
    id: newId(clock.now()),
    runtime: name,
    jobId: null,
    details: {},
    state: 'creating',
    createdAt: clock.now(),
    leaseUntil: null,
    attempts: 0,
    notBefore: 0,
    lastError: null,
    ...known,
  }
  await store.insertMachine(machine)
  return machine
}

/** From a second to five minutes: a provider that is down is not hammered, and not forgotten. */
const backoff = (attempts: number): number => Math.min(300_000, 1000 * 2 ** Math.min(attempts, 9))

/** About an hour: a lock may be that of a long backup. After it, only the next daemon or a person tries again. */
const MOST_FOR_OPERATOR = 20
const NEVER = Number.MAX_SAFE_INTEGER

/** Whether a failed destruction may be tried again. A wall clock that was set back does not postpone it for long. */
export const isDue = ({ notBefore }: MachineRecord, now: number): boolean =>
  notBefore !== NEVER && (notBefore <= now || notBefore > now + 300_000)
