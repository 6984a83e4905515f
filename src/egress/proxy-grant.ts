import type { Duplex } from 'node:stream'
import type { EgressPolicy } from './forward-proxy.ts'

/** Permission of one job to use the proxy, while it runs and with a limited number of connections. */
export interface ProxyGrant extends EgressPolicy {
  /** False when the job has too many connections, or has ended. */
  admit(client: Duplex): boolean
  /** Closes all connections and admits no more. */
  end(): void
}

export const createProxyGrant = (policy: EgressPolicy, maxConnections: number): ProxyGrant => {
  const clients = new Set<Duplex>()
  let ended = false
  return {
    ...policy,
    admit(client) {
      if (ended || client.destroyed) return false
      if (clients.has(client)) return true
      if (clients.size >= maxConnections) return false
      clients.add(client)
      client.once('close', () => clients.delete(client))
      return true
    },
    end() {
      ended = true
      for (const client of clients) client.destroy()
    },
  }
}
