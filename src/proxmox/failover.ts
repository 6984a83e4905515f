import type { Endpoint } from './endpoints.ts'
import type { Clock } from './proxmox-clock.ts'

/** A failed host is not used for this long, unless all others failed too. */
const REST_MS = 30_000

/** Stays with the endpoint that works. On failure, the next one in the configured order is used. */
export const createFailover = (endpoints: readonly Endpoint[], clock: Clock) => {
  const failedAt = new Map<string, number>()
  const rested = (endpoint: Endpoint) => clock.now() - (failedAt.get(endpoint.origin) ?? -REST_MS) >= REST_MS
  let current = endpoints[0]!

  return {
    /** Endpoints in the order in which a call tries them. */
    order(): Endpoint[] {
      const others = endpoints.filter(one => one !== current)
      const all = [current, ...others]
      return [...all.filter(rested), ...all.filter(one => !rested(one))]
    },
    worked(endpoint: Endpoint): void {
      failedAt.delete(endpoint.origin)
      current = endpoint
    },
    failed(endpoint: Endpoint): void {
      failedAt.set(endpoint.origin, clock.now())
    },
  }
}

export type Failover = ReturnType<typeof createFailover>
