import { createDeadline } from '../jobs/deadline.ts'
import { toAppError } from '../jobs/errors.ts'
import type { Check, Readiness, Runtime } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { type Disposal, recordMachine } from './machine-disposal.ts'

/** How long the answer waits for the machine to be confirmed gone. Destroying it goes on in any case. */
const GONE_MS = 60_000

/**
 * Asks every runtime that can tell only with a machine. The machine is on record before it exists, so that it goes
 * whatever happens: here, or by the next daemon.
 */
export const probeAll = async (
  context: EngineContext,
  { disposal, signal }: { disposal: Disposal; signal: AbortSignal },
): Promise<Readiness[]> => {
  const found = await context.readiness.checkAll(signal)
  return Promise.all(
    found.map(async readiness => {
      const runtime = context.runtimes.get(readiness.runtime)
      if (runtime?.probe === undefined || !readiness.ready) return readiness
      return withChecks(readiness, await probeOne(context, runtime, { disposal, signal }))
    }),
  )
}

const probeOne = async (
  context: EngineContext,
  runtime: Runtime,
  { disposal, signal }: { disposal: Disposal; signal: AbortSignal },
): Promise<Check[]> => {
  const machine = await recordMachine(context, runtime)
  const deadline = createDeadline([signal, context.closing], context.config.supervision.provisioning * 1000)
  let known: Record<string, unknown> = {}
  const remember = (details: Record<string, unknown>): Promise<void> => {
    known = { ...known, ...details }
    return context.store.updateMachine(machine.id, { details: known })
  }
  try {
    const checks = await runtime.probe!({ machine, remember, signal: deadline.signal })
    return [...checks, ...(await goes(disposal.dispose(machine)))]
  } catch (error) {
    void disposal.dispose(machine)
    signal.throwIfAborted()
    return [{ name: 'probe', status: 'failed', message: toAppError(error).message }]
  } finally {
    deadline.clear()
  }
}

const goes = async (disposed: Promise<boolean>): Promise<Check[]> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(false), GONE_MS)
  })
  const gone = await Promise.race([disposed, late])
  clearTimeout(timer)
  if (gone) return []
  const message = 'the machine of the probe is not gone yet; destroying it goes on'
  return [{ name: 'clean-up', status: 'warning', message, fix: 'deputy machines tells when it is gone' }]
}

/** What was learnt takes the place of what was only supposed. */
const withChecks = ({ runtime, checks }: Readiness, learnt: readonly Check[]): Readiness => {
  const names = new Set(learnt.map(check => check.name))
  const all = [...checks.filter(check => !names.has(check.name)), ...learnt]
  return { runtime, ready: all.every(check => check.status !== 'failed'), checks: all }
}
