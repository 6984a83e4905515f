import type { AppError } from '../../jobs/errors.ts'
import type { Runtime } from '../../ports.ts'

/** Stands for a cluster whose settings are wrong: it takes no job and tells why, and the daemon lives. */
export const misconfiguredProxmox = (error: AppError): Runtime => {
  const refuse = () => Promise.reject(error)
  return {
    name: 'proxmox',
    limit: 1,
    check: async () => ({
      runtime: 'proxmox',
      ready: false,
      checks: [
        {
          name: 'settings',
          status: 'failed',
          message: error.message,
          ...(error.hint === undefined ? {} : { fix: error.hint }),
        },
      ],
    }),
    fits: () => ({
      ok: false,
      reason: error.message,
      ...(error.hint !== undefined && { hint: `${error.hint} Then: deputy daemon restart` }),
    }),
    provision: refuse,
    start: async () => ({ kind: 'not-started', error }),
    // Its machines may well be alive: nothing is decided about them before the settings are right.
    attach: async () => ({ kind: 'detached' }),
    destroy: refuse,
    list: refuse,
    close: async () => {},
  }
}
