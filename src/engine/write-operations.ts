import { parseSize } from '../jobs/sizes.ts'
import { isTerminal } from '../jobs/states.ts'
import type { MachineRecord } from '../ports.ts'
import { acceptJob, type LocalDirectories } from './accept-job.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { Deputy } from './deputy.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { EngineContext } from './engine-context.ts'
import type { JobLookup } from './job-lookup.ts'
import { jobView, machineView } from './job-views.ts'
import type { Disposal } from './machine-disposal.ts'
import type { NeededJobs } from './needed-jobs.ts'
import { probeProviders } from './probe-providers.ts'
import {
  alreadyFinished,
  elsewhere,
  isNeeded,
  machineBusy,
  noMachine,
  noSessions,
  notGoneYet,
  notRunning,
  stillRunning,
} from './request-errors.ts'
import { withUndestroyedMachines } from './undestroyed-machines.ts'

/** How long a request waits for the confirmation that a machine is gone. */
const DESTROY_WAIT_MS = 20_000

interface OperationParts {
  readonly lookup: JobLookup
  readonly local: LocalDirectories
  readonly activeJobs: ActiveJobs
  readonly dispatcher: Dispatcher
  readonly disposal: Disposal
  readonly neededJobs: NeededJobs
}

type JobOperations = Pick<Deputy, 'submit' | 'cancel' | 'delete' | 'putBlob'>
type MachineOperations = Pick<Deputy, 'openSession' | 'machines' | 'destroyMachine' | 'doctor' | 'probe'>

/** The operations that change jobs. */
export const jobOperations = (
  context: EngineContext,
  { lookup: { getJob, view }, local, activeJobs, dispatcher, disposal, neededJobs }: OperationParts,
): JobOperations => {
  const { store, changes, clock } = context
  return {
    submit: async (manifest, origin, submitOptions = {}) => {
      const submission = { manifest, origin, ...submitOptions }
      const { job, created, position, because, needs } = await acceptJob(
        context,
        local,
        submission,
        dispatcher.wake,
      )
      if (created) {
        changes.emit({ jobId: job.id, kind: 'state' })
        dispatcher.wake()
      }
      if (created && needs.length > 0) {
        neededJobs.add(needs)
        return { ...(await view(job)), runtime_because: because }
      }
      return created
        ? { ...jobView(job, { queuePosition: position }), runtime_because: because }
        : { ...(await view(job)), deduplicated: true }
    },
    cancel: async (id, by) => {
      const job = await getJob(id)
      if (isTerminal(job.state)) throw alreadyFinished(job)
      const at = clock.now()
      const cancelled = await store.move(
        id,
        'cancelled',
        {
          completedAt: at,
          cancelRequestedAt: at,
          error: { code: 'cancelled', message: 'The job was cancelled before it started.' },
        },
        { at, data: { reason: `cancelled by ${by}` } },
        { from: ['pending'] },
      )
      if (!cancelled) {
        await store.update(id, { cancelRequestedAt: at }, { type: 'cancel_requested', at, data: { by } })
        activeJobs.stop(id, { kind: 'cancel', by })
      }
      changes.emit({ jobId: id, kind: 'state' })
      return view(await getJob(id))
    },
    delete: async id => {
      const job = await getJob(id)
      if (!isTerminal(job.state)) throw stillRunning(job)
      const waiting = await store.waitingJob(id)
      if (waiting !== undefined) throw isNeeded(id, waiting)
      const machine = job.machineId === null ? undefined : await store.getMachine(job.machineId)
      if (machine?.jobId === id) await requireOwn(context, machine)
      if (machine?.jobId === id && !(await isGoneInTime(disposal.dispose(machine))))
        throw notGoneYet(machine.id)
      for (const blob of (await store.deleteJob(id)) ?? []) await context.blobs.removeUnused(blob)
      changes.emit({ jobId: id, kind: 'state' })
    },
    putBlob: source => context.blobs.put(source, parseSize(context.config.limits.upload), 'upload'),
  }
}

/** The operations on machines and providers. */
export const machineOperations = (
  context: EngineContext,
  { lookup: { getJob, whereIs }, activeJobs, disposal }: OperationParts,
): MachineOperations => {
  const { store, providers, changes, clock } = context
  return {
    openSession: async (id, request, by) => {
      const job = await getJob(id)
      if (job.state !== 'running' || job.machineId === null) throw notRunning(job)
      const machine = await store.getMachine(job.machineId)
      if (machine === undefined) throw noMachine(job.machineId)
      await requireOwn(context, machine)
      const provider = providers.get(machine.runtime)
      if (provider?.open === undefined) throw noSessions(machine.runtime)
      const data = { by, command: request.argv.join(' ').slice(0, 200) }
      await store.update(id, {}, { type: 'session', at: clock.now(), data })
      changes.emit({ jobId: id, kind: 'state' })
      return provider.open(machine, request, context.closing)
    },
    machines: async () => (await store.listMachines()).map(machine => machineView(machine, whereIs(machine))),
    destroyMachine: async id => {
      const machine = await store.getMachine(id)
      if (machine === undefined) throw noMachine(id)
      await requireOwn(context, machine)
      if (machine.jobId !== null && activeJobs.has(machine.jobId)) throw machineBusy(id, machine.jobId)
      if (!(await isGoneInTime(disposal.dispose(machine)))) throw notGoneYet(id)
    },
    doctor: async signal => {
      const [readiness, machines] = await Promise.all([
        context.readiness.checkAll(signal),
        store.listMachines(),
      ])
      return readiness.map(one => withUndestroyedMachines(one, machines))
    },
    probe: signal => probeProviders(context, { disposal, signal }),
  }
}

/** Machines of another daemon may be on a computer that this one cannot reach. */
const requireOwn = async ({ store, fleet }: EngineContext, { id, daemon }: MachineRecord): Promise<void> => {
  if (daemon === store.daemon) return
  const owner = (await fleet?.daemons())?.find(one => one.id === daemon)
  throw elsewhere(id, owner?.name ?? daemon)
}

const isGoneInTime = (disposed: Promise<boolean>): Promise<boolean> =>
  Promise.race([
    disposed,
    new Promise<boolean>(resolve => {
      setTimeout(() => resolve(false), DESTROY_WAIT_MS).unref()
    }),
  ])
