import { toAppError } from '../jobs/errors.ts'
import type { FoundMachine, MachineRecord, Provider } from '../ports.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import type { KnownTime } from './known-time.ts'
import { type Disposal, isDue, recordMachine } from './machine-disposal.ts'

/** Grace period of an orphan, because its record may be about to be written. */
const GRACE_MS = 60_000

interface MachineSweepOptions {
  readonly activeJobs: ActiveJobs
  readonly disposal: Disposal
  readonly time: KnownTime
}

/** Makes recorded and existing machines agree: destroys orphans and what is due, and forgets what has vanished. */
export const createMachineSweep = (
  context: EngineContext,
  { activeJobs, disposal, time }: MachineSweepOptions,
): (() => Promise<void>) => {
  const { store, clock, log } = context
  const firstSeen = new Map<string, { readonly runtime: string; readonly at: number }>()

  const isPastGracePeriod = ({ name: runtime }: Provider, { id }: FoundMachine): boolean => {
    const seen = firstSeen.get(id) ?? { runtime, at: clock.monotonic() }
    firstSeen.set(id, seen)
    return clock.monotonic() - seen.at >= GRACE_MS
  }

  const reapOrphans = async (provider: Provider): Promise<void> => {
    const idle = await idleMachines(provider)
    const found = await provider.list(context.closing, idle)
    await Promise.all(found.map(machine => reap(provider, machine)))
    const seen = new Set(found.map(machine => machine.id))
    for (const [id, { runtime }] of firstSeen)
      if (runtime === provider.name && !seen.has(id)) firstSeen.delete(id)
    const existing = new Set(found.filter(machine => !machine.leftover).map(machine => machine.id))
    for (const machine of idle) if (!existing.has(machine.id)) await forgetVanished(machine)
  }

  /** Recorded as `destroying`, an orphan is retried with backoff and shown to the user when that keeps failing. */
  const reap = async (provider: Provider, found: FoundMachine): Promise<void> => {
    if ((await store.getMachine(found.id)) !== undefined || !isPastGracePeriod(provider, found)) return
    log.warn({ machine: found.id, runtime: provider.name }, 'destroying an orphaned machine')
    firstSeen.delete(found.id)
    const { id, details } = found
    await disposal.dispose(await recordMachine(context, provider, { id, details, state: 'destroying' }))
  }

  const idleMachines = async ({ name }: Provider): Promise<MachineRecord[]> =>
    (await store.ownMachines()).filter(
      ({ runtime, state }) => runtime === name && (state === 'kept' || state === 'ready'),
    )

  /** Cleans up after an idle machine that no longer exists (a reboot ends sandboxes). */
  const forgetVanished = async ({ id }: MachineRecord): Promise<void> => {
    const machine = await store.getMachine(id)
    if (machine?.state !== 'kept' && !(machine?.state === 'ready' && (await store.markIdleDestroying(id))))
      return
    log.warn({ machine: id, state: machine.state }, 'an idle machine no longer exists')
    await disposal.dispose(machine)
  }

  const isDueForDestruction = (machine: MachineRecord): boolean => {
    if (machine.jobId !== null && activeJobs.has(machine.jobId)) return false
    if (machine.state === 'destroying') return isDue(machine, clock.now())
    return machine.state === 'kept' && machine.leaseUntil !== null && machine.leaseUntil <= time.now()
  }

  return async () => {
    const due = (await store.ownMachines()).filter(isDueForDestruction)
    // In parallel: a machine that waits for a lock must not delay the others.
    await Promise.all([
      ...due.map(disposal.dispose),
      ...[...context.providers.values()].map(provider =>
        reapOrphans(provider).catch(error =>
          log.warn(
            { runtime: provider.name, err: toAppError(error) },
            'cannot list machines to find orphans',
          ),
        ),
      ),
    ])
  }
}
