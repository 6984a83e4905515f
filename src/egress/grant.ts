import type { Duplex } from 'node:stream'
import type { Way } from './forward.ts'

/** The leave of one job to use a proxy: as long as it runs, and so many connections at a time. */
export interface Grant extends Way {
  /** False when there are too many, or when it is over. */
  admit(client: Duplex): boolean
  /** Cuts everything that is open. */
  end(): void
}

export const createGrant = (way: Way, most: number): Grant => {
  const clients = new Set<Duplex>()
  let over = false
  return {
    ...way,
    admit(client) {
      if (over || client.destroyed) return false
      if (clients.has(client)) return true
      if (clients.size >= most) return false
      clients.add(client)
      client.once('close', () => clients.delete(client))
      return true
    },
    end() {
      over = true
      for (const client of clients) client.destroy()
    },
  }
}
