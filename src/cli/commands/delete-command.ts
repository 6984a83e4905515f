import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { eachJob } from '../each-job.ts'

export default defineCommand({
  usage: 'ID…',
  takesJobs: true,
  description: 'Removes the record, the output, the artifacts and a kept machine.',
  flags: { json: JSON_FLAG },
  run: (context, { flags, args }) =>
    eachJob(context, args, {
      json: flags.json,
      act: async (client, id) => {
        await client.delete(id)
        return { job_id: id, deleted: true }
      },
      say: ({ job_id }) => `${job_id} deleted`,
    }),
})
