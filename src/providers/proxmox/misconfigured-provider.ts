import type { AppError } from '../../jobs/errors.ts'
import type { Provider } from '../../ports.ts'

/** A provider for invalid settings: it refuses every job with the reason, so that the daemon can still start. */
export const misconfiguredProxmox = (error: AppError): Provider => {
  const refuse = () => Promise.reject(error)
  return {
    name: 'proxmox',
    ownKernel: true,
    slots: 1,
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
    create: refuse,
    start: async () => ({ kind: 'not-started', error }),
    // Its machines may still run: leave them alone until the settings are fixed.
    attach: async () => ({ kind: 'detached' }),
    destroy: refuse,
    list: refuse,
    close: async () => {},
  }
}
