import { AppError } from '../jobs/errors.ts'
import type { AttachRequest, Outcome } from '../ports.ts'

/** Remembers which machine runs which job: a machine that is kept takes one at a time. */
export const createBusyMachines = () => {
  const jobs = new Map<string, string>()

  const attach = async ({ machine, job }: AttachRequest, work: () => Promise<Outcome>): Promise<Outcome> => {
    jobs.set(machine.id, job.id)
    try {
      return await work()
    } finally {
      jobs.delete(machine.id)
    }
  }

  return {
    attach,
    /** Starts nothing in a machine that runs another job. */
    start: async (run: AttachRequest, work: () => Promise<Outcome>): Promise<Outcome> => {
      const other = jobs.get(run.machine.id)
      if (other !== undefined) return { kind: 'not-started', error: isBusy(run.machine.id, other) }
      return attach(run, work)
    },
  }
}

export const isBusy = (machineId: string, jobId: string): AppError =>
  new AppError('conflict', `The machine ${machineId} runs job ${jobId}.`, {
    hint: `A machine runs one command at a time. Wait for its end: deputy status ${jobId}`,
  })
