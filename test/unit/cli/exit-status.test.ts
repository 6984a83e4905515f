import { expect, it } from 'vitest'
import { exitStatusOf } from '../../../src/cli/exit-status.ts'

it.each([
  [{ status: 'success', exit_code: 0, signal: null }, 0],
  [{ status: 'failed', exit_code: 3, signal: null }, 3],
  [{ status: 'failed', exit_code: null, signal: 'SIGKILL' }, 137],
  [{ status: 'failed', exit_code: null, signal: 'SIGSEGV' }, 139],
  [{ status: 'failed', exit_code: null, signal: null }, 1],
  [{ status: 'failed', exit_code: 0, signal: null }, 1],
  [{ status: 'timeout', exit_code: null, signal: 'SIGTERM' }, 124],
  [{ status: 'cancelled', exit_code: 143, signal: null }, 130],
] as const)('%j exits with %i', (job, status) => {
  expect(exitStatusOf(job)).toBe(status)
})
