import { toAppError } from '../jobs/errors.ts'
import { quickCheck } from './quick-check.ts'

/** Checks the database named on the command line. A process of its own, because the check blocks its thread. */
const DAMAGED_STATUS = 3

try {
  quickCheck(process.argv[2] ?? '')
} catch (error) {
  process.stderr.write(toAppError(error).message)
  process.exitCode = DAMAGED_STATUS
}
