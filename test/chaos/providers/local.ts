import type { Provider } from './provider.ts'
import { findBackend } from './tools.ts'

const none = { faults: [], pids: () => [], leftovers: async () => [], close: async () => {} }

/** Its shims are killed and stopped by the common faults. */
export const sandbox: Provider = {
  name: 'sandbox',
  missing: findBackend,
  open: async () => ({ ...none, place: () => ({ runtime: 'sandbox' }) }),
}

export const host: Provider = {
  name: 'host',
  missing: () => undefined,
  open: async () => ({ ...none, config: { host: { allow: true } }, place: () => ({ runtime: 'host' }) }),
}
