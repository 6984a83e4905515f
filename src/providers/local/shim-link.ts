import { connect, type Socket } from 'node:net'
import { AppError } from '../../jobs/errors.ts'
import {
  type FromShim,
  onMessages,
  PROTOCOL_VERSION,
  type ShimHello,
  sendMessage,
  type ToShim,
} from './shim-protocol.ts'

/** The daemon's end of the connection to one shim. */
export interface ShimLink {
  readonly id: string
  readonly pid: number
  readonly uid: number | null
  machineId: string | null
  jobId: string | null
  /** A finished job whose result was only in the shim's memory when the daemon connected. */
  readonly unsavedJobId: string | undefined
  /** Set from the moment the shim is chosen until it answers. */
  reserved: boolean
  /** The shim gets no more jobs and exits when it is free. */
  retiring: boolean
  /** Monotonic time at which the shim last became free. */
  idleSince: number
  readonly closed: boolean
  send(message: ToShim): void
  /** Returns how to stop listening. */
  listen(listener: (message: FromShim | { type: 'closed' }) => void): () => void
  disconnect(): void
}

const HELLO_MS = 20_000

export const connectShim = (path: string): Promise<ShimLink> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect(path)
    const listeners = new Set<(message: FromShim | { type: 'closed' }) => void>()
    let link: ShimLink | undefined
    let closed = false
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), HELLO_MS)
    const emit = (message: FromShim | { type: 'closed' }) => {
      for (const listener of [...listeners]) listener(message)
    }
    onMessages<FromShim>(socket, message => {
      if (message.type === 'hello') {
        clearTimeout(timer)
        if (message.version !== PROTOCOL_VERSION)
          return void socket.destroy(
            new AppError('unavailable', `The shim ${message.id} speaks another protocol.`),
          )
        link = makeLink(message)
        resolve(link)
      } else if (link !== undefined) {
        if (message.type === 'leaving') link.retiring = true
        if (message.type === 'idle') link.idleSince = performance.now()
        if (message.type === 'gone' && link.machineId === message.machineId) link.machineId = null
        if (message.type === 'done' && link.jobId === message.jobId) link.jobId = null
        emit(message)
      }
    })
    socket.on('error', cause =>
      reject(new AppError('unavailable', `A shim cannot be reached: ${cause.message}.`, { cause })),
    )
    socket.on('close', () => {
      clearTimeout(timer)
      closed = true
      reject(new AppError('unavailable', 'The shim closed the connection.'))
      emit({ type: 'closed' })
    })

    const makeLink = (hello: ShimHello): ShimLink => ({
      id: hello.id,
      pid: hello.pid,
      uid: hello.uid,
      machineId: hello.machineId,
      jobId: hello.jobId,
      unsavedJobId: hello.unsavedJobId,
      reserved: false,
      retiring: false,
      idleSince: performance.now(),
      get closed() {
        return closed
      },
      send: message => sendMessage(socket, message),
      listen: listener => {
        listeners.add(listener)
        if (closed) queueMicrotask(() => listener({ type: 'closed' }))
        return () => listeners.delete(listener)
      },
      disconnect: () => socket.end(),
    })
  })
