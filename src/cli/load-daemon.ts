import { requireProcessLimits } from '../config/process-limits.ts'

/** Loads the daemon, which takes most of the memory that it needs: the limits are checked before. */
export const loadDaemon = async (): Promise<typeof import('./serve-daemon.ts')> => {
  requireProcessLimits({ running: 0 })
  return import('./serve-daemon.ts')
}
