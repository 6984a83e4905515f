import { execFile } from 'node:child_process'
import type { Clock } from '../ports.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // The kernel's own state, independent of the program that sets the clock. It is reset when the clock is set by
  // hand.
  isSynchronized: () =>
    new Promise(resolve => {
      execFile(
        'timedatectl',
        ['show', '--property=NTPSynchronized', '--value'],
        { timeout: 5000 },
        (error, stdout) => resolve(error === null && stdout.trim() === 'yes'),
      )
    }),
}
