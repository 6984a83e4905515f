import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

/** An address inside the guest's network that leads to one outside, and to nothing else. */
export interface Passage {
  readonly guest: Destination
  readonly target: Destination
}

export interface Destination {
  readonly host: string
  readonly port: number
}

/** Where QEMU brings what a guest sends through a passage. */
export interface Way {
  readonly guest: Destination
  readonly socket: string
}

export interface Ways {
  readonly list: readonly Way[]
  close(): void
}

/** Opens the passages of a machine. Each connection is asked about, so that a firewall may change under way. */
export const openWays = async (
  passages: readonly Passage[],
  { directory, mayConnect }: { directory: string; mayConnect: (destination: Destination) => boolean },
): Promise<Ways> => {
  const servers: Server[] = []
  const ends = new Set<Socket>()
  const list = passages.map(({ guest }, index) => ({ guest, socket: join(directory, `way-${index}`) }))
  for (const [index, { guest, target }] of passages.entries()) {
    const server = createServer(near => {
      near.on('error', () => near.destroy())
      if (!mayConnect(guest)) return void near.destroy()
      const far = connect(target.port, target.host)
      far.on('error', () => near.destroy())
      for (const [from, to] of [[near, far] as const, [far, near] as const]) {
        ends.add(from)
        from.pipe(to)
        from.on('close', () => {
          ends.delete(from)
          to.destroy()
        })
      }
    })
    servers.push(server)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(list[index]!.socket, resolve)
    })
  }
  return {
    list,
    close: () => {
      for (const server of servers) server.close()
      for (const end of ends) end.destroy()
    },
  }
}
