import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const DEADLINE_MS = 5000

/**
 * Returns a function that closes the server gracefully: requests may finish until the deadline, then they are cut.
 */
export const closeServer = (server: Server): ((deadlineMs?: number) => Promise<void>) => {
  // Node does not track connections that were upgraded to another protocol, so they are tracked here.
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  let closed: Promise<void> | undefined

  return (deadlineMs = DEADLINE_MS) => {
    closed ??= new Promise(resolve => {
      // A keep-alive connection can be closed only when it is idle, after its last response.
      const idle = setInterval(() => server.closeIdleConnections(), 20)
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, deadlineMs)
      server.close(() => {
        clearInterval(idle)
        clearTimeout(cut)
        resolve()
      })
    })
    return closed
  }
}
