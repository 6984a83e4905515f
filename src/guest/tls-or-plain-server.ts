import type { Server } from 'node:http'
import { createServer, type Socket, type Server as TcpServer } from 'node:net'

const HANDSHAKE = 0x16
/** Same as the headers timeout of the HTTP servers. */
const FIRST_BYTE_MS = 15_000

/**
 * Serves TLS and plain HTTP on one port, chosen by the first byte. Machines report over HTTPS only, but few programs
 * can talk to an HTTPS proxy, so the egress proxy also accepts plain HTTP.
 */
export const createTlsOrPlainServer = (secure: Server, plain: Server): TcpServer => {
  // The two servers never listen; the 'listening' event makes Node start their request timeouts.
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
      // The TLS server reads the buffered bytes itself.
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
