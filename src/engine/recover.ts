import type { Runner } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import type { Disposal } from './machine-disposal.ts'

/**
 * After a restart, however it came about: every job that had a machine is found again by its runtime, which alone
 * knows whether the command ever started; every machine that was on its way out goes on its way.
 */
export const recover = async (context: EngineContext, runner: Runner, disposal: Disposal): Promise<void> => {
  const { store, clock, log, runtimes } = context
  const machines = new Map((await store.listMachines()).map(machine => [machine.id, machine]))
  const claimed = new Set<string>()
  for (const runtime of runtimes.values())
    runtime.recall?.([...machines.values()].filter(machine => machine.runtime === runtime.name))

  for (const job of await store.activeJobs()) {
    const machine = job.machineId === null ? undefined : machines.get(job.machineId)
    const manifest = await store.getManifest(job.id)
    const at = clock.now()
    if (machine === undefined || manifest === undefined || !runtimes.has(machine.runtime)) {
      const reason =
        machine === undefined
          ? 'its machine is not known any more'
          : `the runtime '${machine.runtime}' is not configured any more`
      await store.move(
        job.id,
        'failed',
        { completedAt: at, error: { code: 'lost', message: `The daemon restarted and ${reason}.` } },
        { at, data: { reason } },
      )
      continue
    }
    claimed.add(machine.id)
    log.info({ job: job.id, machine: machine.id, runtime: machine.runtime }, 'finding a job again')
    await store.update(job.id, {}, { type: 'reattached', at, data: { machine: machine.id } })
    void runner.run(job, manifest, machine, 'attach')
    if (job.cancelRequestedAt !== null) runner.stop(job.id, { kind: 'cancel', by: 'an earlier wish' })
  }

  for (const machine of machines.values()) {
    const abandoned =
      machine.state === 'busy' || machine.state === 'creating' || machine.state === 'destroying'
    if (abandoned && !claimed.has(machine.id)) void disposal.dispose(machine)
  }
}
