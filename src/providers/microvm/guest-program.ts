import { Readable, Writable } from 'node:stream'
import { AppError } from '../../jobs/errors.ts'
import { type Frame, MAX_DATA, type SentKind, WINDOW } from './link-frames.ts'

export interface ProgramRequest {
  readonly argv: readonly string[]
  /** Its whole environment; PWD is where it starts. */
  readonly env: Readonly<Record<string, string>>
  /** It ends with the connection. */
  readonly session?: boolean
}

/** A program in a VM. Its streams must be read, or it waits. */
export interface GuestProgram {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** The exit status; null when the connection was lost. */
  readonly exit: Promise<number | null>
  /** Stops reading it; a session is hung up. */
  drop(): void
  receive(frame: Frame): void
  lost(): void
}

export interface ProgramWire {
  readonly request: ProgramRequest
  send(kind: SentKind, value?: Buffer | number): void
  ended(): void
}

export const createGuestProgram = ({ request, send, ended }: ProgramWire): GuestProgram => {
  const order = encodeRequest(request)
  const stdin = createStdin(send)
  let settle: (code: number | null) => void = () => {}
  const exit = new Promise<number | null>(resolve => {
    settle = resolve
  })
  let isOver = false
  const over = (code: number | null): void => {
    if (isOver) return
    isOver = true
    ended()
    stdin.close()
    settle(code)
  }
  const took = (bytes: number): void => {
    if (!isOver && bytes > 0) send('a', bytes)
  }
  const stdout = createOutput(took)
  const stderr = createOutput(took)
  send(request.session ? 'N' : 'n', order)
  return {
    stdin: stdin.stream,
    stdout: stdout.stream,
    stderr: stderr.stream,
    exit,
    drop: () => {
      if (!isOver) send('k')
      over(null)
      for (const { stream } of [stdout, stderr]) stream.destroy()
    },
    receive: ({ kind, value, data }) => {
      if (kind === 'a') return stdin.taken(value)
      if (kind === 'd') return stdout.push(data)
      if (kind === 's') return stderr.push(data)
      for (const { stream } of [stdout, stderr]) stream.push(null)
      over(value)
    },
    lost: () => {
      const error = new AppError('unavailable', 'The connection to the VM was cut.')
      for (const { stream } of [stdout, stderr]) stream.destroy(error)
      over(null)
    },
  }
}

const encodeRequest = ({ argv, env }: ProgramRequest): Buffer => {
  const words = [String(argv.length), ...argv, ...Object.entries(env).map(entry => entry.join('='))]
  const order = Buffer.from(words.map(word => `${word}\0`).join(''))
  if (order.length > MAX_DATA)
    throw new AppError('too_large', `The arguments and variables of a program have ${order.length} bytes.`, {
      hint: `At most ${MAX_DATA} bytes can be passed. Put the rest into a file.`,
    })
  return order
}

/** Sends no more than the program takes. */
const createStdin = (send: ProgramWire['send']) => {
  let credit = WINDOW
  let waiting: { rest: Buffer; done: () => void } | undefined
  const flush = (): void => {
    while (waiting !== undefined) {
      const part = waiting.rest.subarray(0, Math.min(credit, MAX_DATA))
      if (part.length === 0 && waiting.rest.length > 0) return
      credit -= part.length
      if (part.length > 0) send('d', part)
      waiting.rest = waiting.rest.subarray(part.length)
      if (waiting.rest.length > 0) continue
      const { done } = waiting
      waiting = undefined
      done()
    }
  }
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      waiting = { rest: chunk, done }
      flush()
    },
    final: done => {
      send('e')
      done()
    },
  })
  // The program has ended before it read everything, for which it has its reasons.
  stream.on('error', () => undefined)
  return {
    stream,
    taken: (bytes: number): void => {
      credit = Math.min(WINDOW, credit + bytes)
      flush()
    },
    close: (): void => void stream.destroy(),
  }
}

const createOutput = (took: (bytes: number) => void) => {
  let unread = 0
  const stream = new Readable({
    read: () => {
      took(unread)
      unread = 0
    },
  })
  // A lost connection also ends the program, which is what its users wait for.
  stream.on('error', () => undefined)
  return {
    stream,
    push: (data: Buffer): void => {
      unread += data.length
      if (unread > 2 * WINDOW) throw new AppError('unavailable', 'The VM sends more than it may.')
      if (stream.destroyed || stream.push(data)) {
        took(unread)
        unread = 0
      }
    },
  }
}
