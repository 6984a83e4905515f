import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { WebSocket } from 'ws'
import { AppError } from '../jobs/errors.ts'
import type { Session } from '../ports.ts'

/** Connects to a program that the daemon has started, over a WebSocket. */
export const openSession = async (
  address: string | URL,
  ticket: string,
  signal?: AbortSignal,
): Promise<Session> => {
  const socket = connectSocket(address, `/api/sessions/${ticket}`)
  // Listen before the handshake ends: the first message may come together with its answer.
  const session = sessionOf(socket)
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', cause => reject(lostConnection(cause)))
  })
  signal?.addEventListener('abort', () => session.stream.destroy(), { once: true })
  return session
}

const connectSocket = (address: string | URL, path: string): WebSocket => {
  if (typeof address === 'string')
    return new WebSocket(`ws://localhost${path}`, { createConnection: () => connect(address) })
  const url = new URL(address.pathname.replace(/\/$/, '') + path, address)
  url.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
  return new WebSocket(url)
}

const sessionOf = (socket: WebSocket): Session => {
  let code: number | null | undefined
  let settle = { resolve: (_code: number | null): void => {}, reject: (_error: AppError): void => {} }
  const exit = new Promise<number | null>((resolve, reject) => {
    settle = { resolve, reject }
  })
  // Not everybody waits for the exit; the stream fails, too.
  exit.catch(() => {})
  const stream = new Duplex({
    read: () => socket.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      if (socket.readyState === socket.OPEN) socket.send(chunk, () => done())
      else done()
    },
    final: done => {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: 'eof' }), () => done())
      else done()
    },
    destroy: (error, done) => {
      socket.terminate()
      done(error)
    },
  })
  // The exit tells why the connection was lost.
  stream.on('error', () => {})
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) code = exitCode(data)
    else if (!stream.push(data)) socket.pause()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    if (code === undefined) settle.reject(lostConnection())
    else settle.resolve(code)
    stream.push(null)
  })
  return {
    stream,
    exit,
    resize: size => {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: 'resize', ...size }))
    },
  }
}

const exitCode = (data: Buffer): number | null | undefined => {
  const message: unknown = JSON.parse(data.toString('utf8'))
  if (typeof message !== 'object' || message === null || !('code' in message)) return undefined
  return typeof message.code === 'number' ? message.code : null
}

const lostConnection = (cause?: Error): AppError =>
  new AppError(
    'unavailable',
    'The connection to the Deputy daemon was lost, and the session ended with it.',
    {
      hint: 'The job keeps running. Check the daemon: deputy daemon status',
      cause,
    },
  )
