import type { Fleet, MachineRecord, Provider } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import type { Resume } from './resume-machine.ts'

/**
 * Takes over machines of daemons that are gone, where they can be reached from here. A job keeps its machine, its run
 * and its output. A runner bars a run that it does not know, so a command that the other daemon had not sent yet cannot
 * start twice.
 */
export const createAdoption = (
  context: EngineContext,
  fleet: Fleet,
  resume: Resume,
): (() => Promise<void>) => {
  const { store, providers, closing, log } = context
  const shared = [...providers.values()].filter(provider => provider.reachable !== undefined)

  const adopt = async ({ id }: MachineRecord): Promise<void> => {
    const adopted = await fleet.adopt(id)
    if (adopted === undefined) return
    const { machine, job, from } = adopted
    log.warn({ machine: id, job: job?.id, daemon: from }, 'took over a machine of a daemon that is gone')
    const manifest = job && (await store.getManifest(job.id))
    await resume(machine, job && manifest && { job, manifest, from })
  }

  const adoptFrom = async (provider: Provider, machines: readonly MachineRecord[]): Promise<void> => {
    const reachable = await provider.reachable?.(machines, closing)
    for (const machine of machines)
      if (!closing.aborted && (isUncreated(machine) || reachable?.has(machine.id))) await adopt(machine)
  }

  const logFailure = (error: unknown): void => {
    if (!closing.aborted) log.warn({ err: error }, 'cannot take over machines of a daemon that is gone')
  }

  return async () => {
    const machines = await fleet.abandonedMachines(shared.map(({ name }) => name))
    await Promise.all(
      shared.map(provider => {
        const own = machines.filter(({ runtime }) => runtime === provider.name)
        return own.length === 0 ? undefined : adoptFrom(provider, own).catch(logFailure)
      }),
    )
  }
}

/** A provider records what identifies a machine before it creates anything. */
const isUncreated = ({ details }: MachineRecord): boolean => Object.keys(details).length === 0
