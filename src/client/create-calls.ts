import { createDaemonCalls } from './daemon-calls.ts'
import { createFileCalls } from './file-calls.ts'
import { createJobCalls } from './job-calls.ts'
import { createReviewCalls } from './review-calls.ts'
import { createTemplateCalls } from './template-calls.ts'
import type { Connection } from './transport.ts'

/**
 * The operations of the daemon. The CLI, the TypeScript library and the console in the browser make the same calls
 * over their own connection, so nothing here may need Node.
 */
export const createCalls = (connection: Connection) => ({
  ...createJobCalls(connection),
  ...createFileCalls(connection),
  ...createReviewCalls(connection),
  ...createTemplateCalls(connection),
  ...createDaemonCalls(connection),
})
