import type { Server } from 'node:http'
import { createServer, type Socket, type Server as TcpServer } from 'node:net'

const HANDSHAKE = 0x16
/** As long as a header may take. */
const FIRST_BYTE_MS = 15_000

/**
 * One port for two servers: whoever begins with a TLS handshake gets the secure one. Machines report over HTTPS
 * alone, but few programs of theirs could speak to a proxy that way.
 */
export const createTlsOrPlainServer = (secure: Server, plain: Server): TcpServer => {
  // They never listen themselves; but from this word on they time out whoever is slow.
  for (const server of [secure, plain]) server.emit('listening')
  const server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
    const timer = setTimeout(() => socket.destroy(), FIRST_BYTE_MS)
    const leave = () => void socket.destroy()
    socket.once('close', () => clearTimeout(timer))
    socket.on('error', leave)
    socket.once('end', leave)
    socket.once('data', first => {
      clearTimeout(timer)
      socket.off('end', leave)
      admit(socket, first, first[0] === HANDSHAKE ? secure : plain)
      // The secure server reads by itself what already exists.
      if (first[0] !== HANDSHAKE) socket.resume()
    })
  })
  server.once('close', () => {
    for (const server of [secure, plain]) server.close()
  })
  return server
}

const admit = (socket: Socket, first: Buffer, server: Server): void => {
  socket.pause()
  socket.unshift(first)
  server.emit('connection', socket)
}
