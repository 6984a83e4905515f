import { isId } from '../jobs/ids.ts'
import type { Job } from '../jobs/job.ts'
import { isTerminal } from '../jobs/states.ts'
import type { MachineRecord } from '../ports.ts'
import type { JobView } from './deputy.ts'
import type { EngineContext } from './engine-context.ts'
import { jobView } from './job-views.ts'
import { lastLines } from './output-pages.ts'
import { noJob } from './request-errors.ts'

/** Finds jobs by id and builds their public view. */
export interface JobLookup {
  /** Throws `not_found` for an unknown id. */
  getJob(id: string): Promise<Job>
  view(job: Job): Promise<JobView>
  /** Name of the node or VM that a machine is on, where known. */
  whereIs(machine: MachineRecord | undefined): string | undefined
}

export const createJobLookup = ({ store }: EngineContext): JobLookup => {
  const getJob = async (id: string): Promise<Job> => {
    const job = isId(id) ? await store.getJob(id) : undefined
    if (job === undefined) throw noJob(id)
    return job
  }
  const whereIs = (machine: MachineRecord | undefined): string | undefined => {
    const { node, vmid } = machine?.details ?? {}
    if (typeof node !== 'string') return undefined
    return vmid === undefined ? node : `VM ${vmid} on ${node}`
  }
  const whereRuns = async ({ state, machineId, result }: Job): Promise<string | undefined> => {
    if (machineId === null || isTerminal(state)) return result?.executedOn?.node
    return whereIs(await store.getMachine(machineId))
  }
  const view = async (job: Job) => {
    const waitsFor = job.state === 'pending' ? await store.unfinishedNeeds(job.id) : []
    return jobView(job, {
      queuePosition: job.state === 'pending' && waitsFor.length === 0 ? await store.queuePosition(job) : null,
      waitsFor,
      where: await whereRuns(job),
      ...(job.statusMode === 'streaming' &&
        job.state === 'running' && { outputTail: await lastLines(store, job) }),
    })
  }
  return { getJob, view, whereIs }
}
