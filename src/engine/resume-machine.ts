import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { MachineRecord } from '../ports.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import type { Disposal } from './machine-disposal.ts'

/** Continues with a machine of an earlier daemon. `from` is the name of that daemon, if it was another one. */
export type Resume = (
  machine: MachineRecord,
  run: { readonly job: Job; readonly manifest: Manifest; readonly from?: string } | undefined,
) => Promise<void>

/**
 * Attaches to the job of a machine through its provider, which alone knows whether the command has started. A machine
 * that no job uses is destroyed, unless it is kept or in a pool.
 */
export const createResume = (context: EngineContext, activeJobs: ActiveJobs, disposal: Disposal): Resume => {
  const { store, clock, log } = context
  return async (machine, run) => {
    if (run === undefined) {
      if (machine.state !== 'kept' && machine.state !== 'ready') void disposal.dispose(machine)
      return
    }
    const { job, manifest, from } = run
    const fields = { job: job.id, machine: machine.id, runtime: machine.runtime }
    log.info(fields, 'attaching to a job of the previous daemon')
    const data = { machine: machine.id, ...(from !== undefined && { from }) }
    await store.update(job.id, {}, { type: 'reattached', at: clock.now(), data })
    void activeJobs.run(job, manifest, machine, 'attach')
    stopIfCancelled(activeJobs, job)
  }
}

export const stopIfCancelled = (activeJobs: ActiveJobs, job: Job): void => {
  if (job.cancelRequestedAt !== null) activeJobs.stop(job.id, { kind: 'cancel', by: 'an earlier request' })
}
