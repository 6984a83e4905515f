import type { GuestDriver } from './driver.ts'

/** Guests that run in name only; a test may give them an agent. */
export const noGuests = (): GuestDriver => ({
  start: async () => ({
    stop: async () => {},
    shutdown: async () => true,
    agent: () => undefined,
  }),
})
