import { BATCH } from '../jobs/batch-command.ts'
import type { Job } from '../jobs/job.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import type { Disposal } from './machine-disposal.ts'

/**
 * Runs once after each start of the daemon. Each job that has a machine is attached again through its provider, which
 * alone knows whether the command has started. Machines that no job uses are destroyed.
 */
export const recover = async (
  context: EngineContext,
  activeJobs: ActiveJobs,
  disposal: Disposal,
): Promise<void> => {
  const { store, clock, log, providers } = context
  const machines = new Map((await store.ownMachines()).map(machine => [machine.id, machine]))
  const claimed = new Set<string>()
  for (const provider of providers.values())
    provider.recall?.([...machines.values()].filter(machine => machine.runtime === provider.name))

  const stopIfCancelled = (job: Job): void => {
    if (job.cancelRequestedAt !== null) activeJobs.stop(job.id, { kind: 'cancel', by: 'an earlier request' })
  }

  for (const job of await store.activeJobs()) {
    const machine = job.machineId === null ? undefined : machines.get(job.machineId)
    const manifest = await store.getManifest(job.id)
    const at = clock.now()
    if (job.runtime === BATCH && manifest !== undefined) {
      await store.update(job.id, {}, { type: 'reattached', at, data: {} })
      void activeJobs.runBatch(job, manifest, 'attach')
      stopIfCancelled(job)
      continue
    }
    if (machine === undefined || manifest === undefined || !providers.has(machine.runtime)) {
      const reason =
        machine === undefined
          ? 'its machine is no longer recorded'
          : `the runtime '${machine.runtime}' is no longer configured`
      await store.move(
        job.id,
        'failed',
        { completedAt: at, error: { code: 'lost', message: `The daemon restarted and ${reason}.` } },
        { at, data: { reason } },
      )
      continue
    }
    claimed.add(machine.id)
    log.info(
      { job: job.id, machine: machine.id, runtime: machine.runtime },
      'attaching to a job of the previous daemon',
    )
    await store.update(job.id, {}, { type: 'reattached', at, data: { machine: machine.id } })
    void activeJobs.run(job, manifest, machine, 'attach')
    stopIfCancelled(job)
  }

  for (const machine of machines.values()) {
    const abandoned =
      machine.state === 'busy' || machine.state === 'creating' || machine.state === 'destroying'
    if (abandoned && !claimed.has(machine.id)) void disposal.dispose(machine)
  }
}
