import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { eachJob } from '../each-job.ts'

export default defineCommand({
  usage: 'ID…',
  takesJobs: true,
  description:
    'A running job gets SIGTERM, then SIGKILL after a grace period. Its output and artifacts are kept.',
  flags: { json: JSON_FLAG },
  run: (context, { flags, args }) =>
    eachJob(context, args, {
      json: flags.json,
      act: (client, id) => client.cancel(id),
      say: job =>
        `${job.job_id} ${job.status === 'cancelled' ? 'cancelled' : `${job.status}, cancellation requested`}`,
    }),
})
