import type { Deputy } from '../../../src/engine/deputy.ts'

/** Proxmox tools have no business with jobs: whatever they ask of Deputy fails the test. */
export const refusingDeputy: Deputy = new Proxy({} as Deputy, {
  get: (_, name) => {
    throw new Error(`a Proxmox tool used deputy.${String(name)}`)
  },
})
