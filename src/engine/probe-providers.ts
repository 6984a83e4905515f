import { createDeadline } from '../jobs/deadline.ts'
import { toAppError } from '../jobs/errors.ts'
import type { Check, Provider, Readiness } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import { type Disposal, recordMachine } from './machine-disposal.ts'

/** How long the report waits for the confirmation that the machine is gone. The destruction continues in any case. */
const DESTROY_WAIT_MS = 60_000

/**
 * Probes every provider that needs a real machine for it. The machine is recorded before it is created, so this daemon
 * or the next one destroys it whatever happens.
 */
export const probeProviders = async (
  context: EngineContext,
  { disposal, signal }: { disposal: Disposal; signal: AbortSignal },
): Promise<Readiness[]> => {
  const found = await context.readiness.checkAll(signal)
  return Promise.all(
    found.map(async readiness => {
      const provider = context.providers.get(readiness.runtime)
      if (provider?.probe === undefined || !readiness.ready) return readiness
      return withChecks(readiness, await probeOne(context, provider, { disposal, signal }))
    }),
  )
}

const probeOne = async (
  context: EngineContext,
  provider: Provider,
  { disposal, signal }: { disposal: Disposal; signal: AbortSignal },
): Promise<Check[]> => {
  const machine = await recordMachine(context, provider)
  const deadline = createDeadline([signal, context.closing], context.config.supervision.provisioning * 1000)
  let known: Record<string, unknown> = {}
  const remember = (details: Record<string, unknown>): Promise<void> => {
    known = { ...known, ...details }
    return context.store.updateMachine(machine.id, { details: known })
  }
  try {
    const checks = await provider.probe!({ machine, remember, signal: deadline.signal })
    return [...checks, ...(await waitUntilGone(disposal.dispose(machine)))]
  } catch (error) {
    void disposal.dispose(machine)
    signal.throwIfAborted()
    return [{ name: 'probe', status: 'failed', message: toAppError(error).message }]
  } finally {
    deadline.clear()
  }
}

const waitUntilGone = async (disposed: Promise<boolean>): Promise<Check[]> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(false), DESTROY_WAIT_MS)
  })
  const gone = await Promise.race([disposed, late])
  clearTimeout(timer)
  if (gone) return []
  const message = 'the probe machine is not destroyed yet; destruction continues'
  return [{ name: 'clean-up', status: 'warning', message, fix: 'deputy machines' }]
}

/** Results of the probe replace the checks with the same name. */
const withChecks = ({ runtime, checks }: Readiness, probed: readonly Check[]): Readiness => {
  const names = new Set(probed.map(check => check.name))
  const all = [...checks.filter(check => !names.has(check.name)), ...probed]
  return { runtime, ready: all.every(check => check.status !== 'failed'), checks: all }
}
