import type { Toolset } from '../../toolset.ts'
import { cancelJob } from './cancel-job.ts'
import { deleteJob } from './delete-job.ts'
import { getJobResult } from './get-job-result.ts'
import { getJobStatus } from './get-job-status.ts'
import { listJobs } from './list-jobs.ts'
import { getPatch, readArtifact } from './read-artifact.ts'
import { streamJobOutput } from './stream-job-output.ts'
import { submitJob } from './submit-job.ts'

export const jobsToolset: Toolset = {
  name: 'jobs',
  summary: 'delegate work to isolated machines',
  byDefault: true,
  tools: [
    submitJob,
    getJobStatus,
    getJobResult,
    streamJobOutput,
    readArtifact,
    getPatch,
    cancelJob,
    deleteJob,
    listJobs,
  ],
}
