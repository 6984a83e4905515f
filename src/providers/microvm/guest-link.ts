import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { AppError } from '../../jobs/errors.ts'
import { createGuestProgram, type GuestProgram, type ProgramRequest } from './guest-program.ts'
import { createFrameReader, encodeFrame, NOTHING } from './link-frames.ts'

/** The connection to the agent of one VM. It carries any number of programs at a time. */
export interface GuestLink {
  run(request: ProgramRequest): GuestProgram
  /** Sets the clock of the VM, and makes its random numbers those of the seed: it may be one of many of a snapshot. */
  renew(now: number, seed: Buffer): Promise<void>
  /** Settles when the connection has ended. */
  readonly closed: Promise<void>
  close(): void
}

const NONCE_BYTES = 16

/** Those who wait for frames, by the number in them. */
type Receivers = Map<number, Pick<GuestProgram, 'receive' | 'lost'>>

/** Connects to the socket of a VM. Resolves when the agent answers, which it does once the VM has booted. */
export const openGuestLink = (path: string, signal: AbortSignal): Promise<GuestLink> =>
  new Promise((resolve, reject) => {
    const socket = connect(path)
    const nonce = randomBytes(NONCE_BYTES)
    const programs: Receivers = new Map()
    let held: Buffer = Buffer.alloc(0)
    let isOpen = false
    const onAbort = (): void => void socket.destroy(signal.reason)
    const closed = new Promise<void>(done => {
      socket.once('close', () => {
        signal.removeEventListener('abort', onAbort)
        reject(signal.aborted ? signal.reason : cutOff())
        for (const program of programs.values()) program.lost()
        programs.clear()
        done()
      })
    })
    // The reason is that of the abort, or that nothing listens: 'close' follows.
    socket.on('error', () => undefined)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) return onAbort()

    const read = createFrameReader(frame => programs.get(frame.id)?.receive(frame))
    /** Skips what an earlier connection has left unread, up to the answer to this one. */
    const synchronize = (chunk: Buffer): Buffer | undefined => {
      held = Buffer.concat([held, chunk])
      const at = held.indexOf(nonce)
      if (at < 0) {
        held = held.subarray(-NONCE_BYTES)
        return undefined
      }
      return held.subarray(at + NONCE_BYTES)
    }
    socket.on('data', (chunk: Buffer) => {
      try {
        if (isOpen) return read(chunk)
        const rest = synchronize(chunk)
        if (rest === undefined) return
        isOpen = true
        signal.removeEventListener('abort', onAbort)
        resolve(linkOver(socket, programs, closed))
        read(rest)
      } catch (error) {
        socket.destroy(error instanceof Error ? error : undefined)
      }
    })
    socket.write(Buffer.concat([NOTHING, encodeFrame('S', 0, nonce)]))
  })

const linkOver = (socket: Socket, programs: Receivers, closed: Promise<void>): GuestLink => {
  let last = 0
  return {
    closed,
    close: () => void socket.destroy(),
    run: request => {
      if (socket.destroyed) throw cutOff()
      const id = ++last
      const program = createGuestProgram({
        request,
        send: (kind, value) => {
          if (!socket.destroyed) socket.write(encodeFrame(kind, id, value))
        },
        ended: () => void programs.delete(id),
      })
      programs.set(id, program)
      return program
    },
    renew: (now, seed) =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) throw cutOff()
        const id = ++last
        const receive = (): void => {
          programs.delete(id)
          resolve()
        }
        programs.set(id, { receive, lost: () => reject(cutOff()) })
        const time = Buffer.alloc(8)
        time.writeUInt32BE(Math.floor(now / 1000))
        time.writeUInt32BE((now % 1000) * 1000, 4)
        socket.write(encodeFrame('c', id, Buffer.concat([time, seed])))
      }),
  }
}

const cutOff = (): AppError => new AppError('unavailable', 'The connection to the VM was cut.')
