import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const DEADLINE_MS = 5000

/** Makes the graceful end of a server: what it is doing may finish until the deadline, then it is cut. */
export const closeServer = (server: Server): ((deadlineMs?: number) => Promise<void>) => {
  // The server forgets connections that were upgraded to another protocol; they count here.
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  let closed: Promise<void> | undefined

  return (deadlineMs = DEADLINE_MS) => {
    closed ??= new Promise(resolve => {
      // A kept connection turns idle when its last answer has gone out, and only then can be closed.
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
