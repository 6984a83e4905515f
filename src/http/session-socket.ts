import type { WebSocket } from 'ws'
import { z } from 'zod'
import type { Session } from '../ports.ts'

export const terminalSize = z.strictObject({
  columns: z.int().min(1).max(9999),
  rows: z.int().min(1).max(9999),
})

/** Text messages of the client. Binary messages are bytes of the stream, in both directions. */
const control = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('resize'), ...terminalSize.shape }),
  z.strictObject({ type: z.literal('eof') }),
])

/** Connects a WebSocket with a session. The program ends with the socket; its exit status is the last message. */
export const serveSessionSocket = (socket: WebSocket, { stream, exit, resize }: Session): void => {
  stream.on('data', (chunk: Buffer) => {
    stream.pause()
    // Read on when this is sent: a client that does not read pauses the program.
    socket.send(chunk, () => stream.resume())
  })
  let hasEnded = false
  stream.on('error', () => socket.close(1011))
  stream.on('end', () => {
    void exit.then(code => {
      hasEnded = true
      if (socket.readyState !== socket.OPEN) return
      socket.send(JSON.stringify({ type: 'exit', code }))
      socket.close(1000)
      // The program may have ended without reading everything. Read on, or the answer to the close is never read.
      socket.resume()
    })
  })
  socket.on('message', (data: Buffer, isBinary) => {
    if (hasEnded) return
    if (isBinary) {
      if (stream.write(data)) return
      socket.pause()
      stream.once('drain', () => socket.resume())
      return
    }
    const message = control.safeParse(parseJson(data))
    if (!message.success) return socket.close(1008)
    if (message.data.type === 'eof') stream.end()
    else resize(message.data)
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', () => stream.destroy())
}

const parseJson = (data: Buffer): unknown => {
  try {
    return JSON.parse(data.toString('utf8'))
  } catch {
    return undefined
  }
}
