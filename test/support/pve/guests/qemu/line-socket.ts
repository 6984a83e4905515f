import { createServer, type Socket } from 'node:net'

interface LineSocket {
  write(bytes: Buffer | string): void
  close(): void
}

interface LineHandlers {
  readonly line: (line: Buffer) => void
  readonly end: () => void
}

export interface Doorway {
  /** Resolves when QEMU has come; it comes once. */
  accept(handlers: LineHandlers): Promise<LineSocket>
  close(): void
}

/** Listens on a Unix socket for QEMU, which connects when it starts, so that nobody has to try again and again. */
export const openDoorway = async (path: string): Promise<Doorway> => {
  const server = createServer()
  const arrival = new Promise<Socket>((resolve, reject) => {
    server.once('connection', resolve)
    server.once('close', () => reject(new Error('QEMU did not connect')))
  })
  arrival.catch(() => {})
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  return {
    accept: async handlers => linesOf(await arrival, handlers),
    close: () => void server.close(),
  }
}

const linesOf = (socket: Socket, { line, end }: LineHandlers): LineSocket => {
  let rest: Buffer = Buffer.alloc(0)
  socket.on('data', chunk => {
    rest = Buffer.concat([rest, chunk])
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
      const found = rest.subarray(0, at)
      rest = rest.subarray(at + 1)
      line(found)
    }
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', end)
  return { write: bytes => void socket.write(bytes), close: () => socket.destroy() }
}
