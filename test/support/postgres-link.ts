import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type PostgresServer, SOCKET } from './postgres.ts'

/** A way to the server for one daemon, which can be cut: see `url` of the server. */
export interface PostgresLink {
  /** Closes all connections and takes no more. */
  cut(): void
  mend(): void
  close(): Promise<void>
}

export const startPostgresLink = async (server: PostgresServer, directory: string): Promise<PostgresLink> => {
  const sockets = new Set<Socket>()
  let isCut = false
  const closeAll = (): void => sockets.forEach(socket => void socket.destroy())
  const relay = createServer(client => {
    if (isCut) return void client.destroy()
    const upstream = connect(server.socket)
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        peer.destroy()
      })
      socket.pipe(peer)
    }
  })
  await new Promise<void>(resolve => relay.listen(join(directory, SOCKET), resolve))
  return {
    cut: () => {
      isCut = true
      closeAll()
    },
    mend: () => {
      isCut = false
    },
    close: () => {
      closeAll()
      return new Promise(resolve => relay.close(() => resolve()))
    },
  }
}
