import { execFile } from 'node:child_process'
import type { Clock } from '../ports.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // The kernel's own word, whichever program keeps the time; it takes it back when the clock is set by hand.
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
