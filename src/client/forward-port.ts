import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { compiledFile } from '../files/compiled-file.ts'
import { AppError } from '../jobs/errors.ts'
import type { Client } from './daemon-client.ts'

export interface ForwardOptions {
  /** The port in the machine. */
  readonly port: number
  /** The port of this computer; 0 for any free one. */
  readonly localPort?: number
  /** Called when a connection fails; the others go on. */
  readonly onError?: (error: AppError) => void
}

export interface Forward {
  /** The port of this computer. */
  readonly localPort: number
  close(): Promise<void>
}

/** Listens on the loopback address of this computer; each connection is a session in the machine of a running job. */
export const forwardPort = async (
  client: Client,
  jobId: string,
  { port, localPort = 0, onError = () => {} }: ForwardOptions,
): Promise<Forward> => {
  const argv = [
    ...['sh', '-c', readFileSync(compiledFile('client/program/connect.sh'), 'utf8')],
    ...['connect', String(port)],
  ]
  const sockets = new Set<Socket>()
  const serve = async (socket: Socket): Promise<void> => {
    const gone = new AbortController()
    sockets.add(socket)
    // The stream to the machine tells of errors.
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      gone.abort()
    })
    const { stream, exit } = await client.openSession(jobId, { argv, env: {} }, gone.signal)
    stream.once('close', () => socket.end())
    socket.pipe(stream).pipe(socket)
    const code = await exit
    if (gone.signal.aborted) return
    if (code === NOT_LISTENING) throw nothingListens(port, jobId)
    if (code === NO_PROGRAM) throw noProgram()
  }
  const server = createServer({ allowHalfOpen: true }, socket => {
    serve(socket).catch((error: unknown) => {
      socket.destroy()
      if (error instanceof AppError) onError(error)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', cause => reject(cannotListen(localPort, cause)))
    server.listen(localPort, '127.0.0.1', resolve)
  })
  return {
    localPort: (server.address() as AddressInfo).port,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** Exit statuses of the program. */
const NOT_LISTENING = 69
const NO_PROGRAM = 127

const nothingListens = (port: number, jobId: string): AppError =>
  new AppError('unavailable', `Nothing listens on port ${port} of the machine.`, {
    hint: `Look inside: deputy shell ${jobId}. On an SSH node the job needs --network full.`,
  })

const noProgram = (): AppError =>
  new AppError('unsupported', 'The machine has neither bash nor nc, which connect to its ports.', {
    hint: 'Use an image that has one of them.',
  })

const cannotListen = (port: number, cause: Error): AppError =>
  new AppError('conflict', `Cannot listen on port ${port} of this computer: ${cause.message}.`, {
    hint: 'Let Deputy choose a free one: deputy forward ID 0:PORT',
    cause,
  })
