import { BATCH } from '../jobs/batch-command.ts'
import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import { type Resume, stopIfCancelled } from './resume-machine.ts'

/** Runs once after each start of the daemon: continues with the jobs and machines of the previous one. */
export const recover = async (
  context: EngineContext,
  activeJobs: ActiveJobs,
  resume: Resume,
): Promise<void> => {
  const { store, clock, providers } = context
  const machines = new Map((await store.ownMachines()).map(machine => [machine.id, machine]))
  for (const provider of providers.values())
    provider.recall?.([...machines.values()].filter(machine => machine.runtime === provider.name))

  const resumeBatch = async (job: Job, manifest: Manifest): Promise<void> => {
    await store.update(job.id, {}, { type: 'reattached', at: clock.now(), data: {} })
    void activeJobs.runBatch(job, manifest, 'attach')
    stopIfCancelled(activeJobs, job)
  }

  const fail = async (job: Job, reason: string): Promise<void> => {
    const at = clock.now()
    const error = { code: 'lost' as const, message: `The daemon restarted and ${reason}.` }
    await store.move(job.id, 'failed', { completedAt: at, error }, { at, data: { reason } })
  }

  const claimed = new Set<string>()
  for (const job of await store.activeJobs()) {
    const machine = job.machineId === null ? undefined : machines.get(job.machineId)
    const manifest = await store.getManifest(job.id)
    if (manifest === undefined) await fail(job, 'its manifest is no longer recorded')
    else if (job.runtime === BATCH) await resumeBatch(job, manifest)
    else if (machine === undefined) await fail(job, 'its machine is no longer recorded')
    else if (!providers.has(machine.runtime))
      await fail(job, `the runtime '${machine.runtime}' is no longer configured`)
    else {
      claimed.add(machine.id)
      await resume(machine, { job, manifest })
    }
  }
  for (const machine of machines.values()) if (!claimed.has(machine.id)) await resume(machine, undefined)
}
