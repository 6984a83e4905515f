import { connect, type Socket } from 'node:net'

export interface RawLoadOptions {
  readonly port: number
  readonly count: number
  readonly inFlight: number
  /** The n-th request, complete, with its head. */
  next(n: number): Buffer
}

/**
 * Requests a second over connections that stay open. It writes and reads bytes itself: a client library costs
 * more than the servers that are measured, and would make them look alike.
 */
export const rawLoad = async ({ port, count, inFlight, next }: RawLoadOptions): Promise<number> => {
  const sockets = await Promise.all(Array.from({ length: inFlight }, () => open(port)))
  let sent = 0
  try {
    const began = performance.now()
    await Promise.all(
      sockets.map(socket => sendRequests(socket, () => (sent < count ? next(sent++) : undefined))),
    )
    return (count * 1000) / (performance.now() - began)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

const open = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
      socket.off('error', reject)
      resolve(socket)
    })
    socket.once('error', reject)
  })

/** One request after the other until there is none left. */
const sendRequests = (socket: Socket, next: () => Buffer | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    let held = ''
    const send = (): void => {
      const request = next()
      if (request === undefined) resolve()
      else socket.write(request)
    }
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      held += text
      const headEnd = held.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(held)?.[1] ?? 0)
      if (held.length < headEnd + 4 + length) return
      if (!held.startsWith('HTTP/1.1 200 ')) return reject(new Error(`answered with ${held.slice(0, 300)}`))
      held = ''
      send()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed a connection')))
    send()
  })

/** A request as curl writes it. */
export const post = (path: string, headers: Readonly<Record<string, string>>, body: Buffer): Buffer => {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1:8765',
    'User-Agent: curl/8.14.1',
    'Accept: */*',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${body.length}`,
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body])
}
