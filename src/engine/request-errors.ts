import { AppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'

/** The errors of requests that name a missing job or machine, or one in the wrong state. */

export const noJob = (id: string): AppError =>
  new AppError('not_found', `No job '${id}'.`, {
    hint: 'deputy list (the tool list_jobs) shows the jobs. Old jobs are deleted in time.',
  })

export const notFinished = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is not finished: it is ${job.state}.`, {
    hint: 'Wait for it (deputy logs -f, or get_job_status with wait_seconds), or read its output so far (stream_job_output).',
  })

export const alreadyFinished = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is already finished: ${job.state}.`, {
    hint: 'Read its result: deputy result, or get_job_result.',
  })

export const stillRunning = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is ${job.state}; only a finished job can be deleted.`, {
    hint: `deputy cancel ${job.id}`,
  })

export const isNeeded = (id: string, waiting: string): AppError =>
  new AppError('conflict', `Job ${id} is needed by job ${waiting}, which has not started.`, {
    hint: `Delete it later, or cancel the other one: deputy cancel ${waiting}`,
  })

export const noArtifact = (id: string, path: string, known: readonly string[]): AppError =>
  new AppError('not_found', `Job ${id} has no artifact '${path}'.`, {
    hint:
      known.length > 0
        ? `It has: ${known.slice(0, 10).join(', ')}.`
        : "It has no artifacts: set globs in 'artifacts' when submitting.",
  })

export const noPatch = (id: string): AppError =>
  new AppError('not_found', `Job ${id} has no patch.`, {
    hint: "Submit with a workspace and 'patch': true (deputy run --workspace DIR --apply).",
  })

export const noMachine = (id: string): AppError =>
  new AppError('not_found', `No machine '${id}'.`, { hint: 'deputy machines' })

export const elsewhere = (id: string, daemon: string): AppError =>
  new AppError('conflict', `Machine ${id} belongs to the daemon '${daemon}'; only that daemon can do this.`, {
    hint: 'Run the command on the computer of that daemon: deputy daemons',
  })

export const machineBusy = (id: string, jobId: string): AppError =>
  new AppError('conflict', `Machine ${id} is running job ${jobId}.`, { hint: `deputy cancel ${jobId}` })

export const notGoneYet = (id: string): AppError =>
  new AppError('unavailable', `Machine ${id} is not destroyed yet; destruction continues.`, {
    hint: 'deputy machines',
  })

export const notRunning = (job: Job): AppError =>
  new AppError('conflict', `Job ${job.id} is not running: it is ${job.state}.`, {
    hint: 'A session needs a running job. Keep a machine for later: deputy run --keep -- COMMAND',
  })

export const noSessions = (provider: string): AppError =>
  new AppError('unsupported', `Machines of '${provider}' have no way in for a terminal, files or ports.`, {
    hint: 'Run the job elsewhere: deputy run --runtime sandbox, container, ssh or host.',
  })
