import { Duplex } from 'node:stream'
import { AppError } from '../jobs/errors.ts'

const HEADER = 9
/** Bytes that one side may send before the other has passed them on; as in `connections.pl`. */
export const WINDOW = 256 * 1024

export interface ChannelOptions {
  /** Writes to the stdin of the program in the machine. */
  send(frame: Buffer): void
  onReady(): void
  onConnection(connection: Duplex): void
  /** Connections at a time. More are closed at once. */
  readonly most: number
}

export interface ConnectionChannel {
  /** Reads the stdout of the program. Throws for what it would never send: the job can write there, too. */
  receive(chunk: Buffer): void
  /** Cuts all connections. */
  close(): void
}

/** The connections that `connections.pl` accepts in a machine, each as a stream. */
export const createConnectionChannel = ({
  send,
  onReady,
  onConnection,
  most,
}: ChannelOptions): ConnectionChannel => {
  const connections = new Map<number, Connection>()
  let held: Buffer = Buffer.alloc(0)
  let isClosed = false

  const open = (id: number): void => {
    if (connections.has(id)) throw confused()
    if (connections.size >= most) return void send(frame('x', id))
    const connection = createConnection({
      send: (kind, value) => {
        if (!isClosed) send(frame(kind, id, value))
      },
      closed: () => void connections.delete(id),
    })
    connections.set(id, connection)
    onConnection(connection.stream)
  }

  const take = (kind: string, id: number, value: number, data: Buffer): void => {
    if (kind === 'r') return void onReady()
    if (kind === 'o') return void open(id)
    const connection = connections.get(id)
    // Closed here while the frame was on its way.
    if (connection === undefined) return
    if (kind === 'd') connection.data(data)
    else if (kind === 'a') connection.delivered(value)
    else if (kind === 'e') connection.end()
    else if (kind === 'x') connection.close()
    else throw confused()
  }

  return {
    receive: chunk => {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      while (held.length >= HEADER) {
        const kind = String.fromCharCode(held[0] ?? 0)
        const value = held.readUInt32BE(5)
        const length = kind === 'd' ? value : 0
        if (length > WINDOW) throw confused()
        if (held.length < HEADER + length) return
        const data = held.subarray(HEADER, HEADER + length)
        const id = held.readUInt32BE(1)
        held = held.subarray(HEADER + length)
        take(kind, id, value, data)
      }
    },
    close: () => {
      isClosed = true
      for (const { stream } of connections.values()) stream.destroy()
    },
  }
}

type Kind = 'd' | 'a' | 'e' | 'x'

/** The value is the data, or how many bytes were delivered. */
const frame = (kind: Kind, id: number, value: Buffer | number = 0): Buffer => {
  const header = Buffer.alloc(HEADER, kind)
  header.writeUInt32BE(id, 1)
  header.writeUInt32BE(typeof value === 'number' ? value : value.length, 5)
  return typeof value === 'number' ? header : Buffer.concat([header, value])
}

interface Connection {
  readonly stream: Duplex
  data(data: Buffer): void
  delivered(bytes: number): void
  end(): void
  close(): void
}

const createConnection = (wire: {
  send(kind: Kind, value?: Buffer | number): void
  closed(): void
}): Connection => {
  let credit = WINDOW
  let unread = 0
  let waiting: { rest: Buffer; done: () => void } | undefined
  let isClosedThere = false

  const flush = (): void => {
    if (waiting === undefined) return
    const part = waiting.rest.subarray(0, credit)
    credit -= part.length
    if (part.length > 0) wire.send('d', part)
    waiting.rest = waiting.rest.subarray(part.length)
    if (waiting.rest.length > 0) return
    const { done } = waiting
    waiting = undefined
    done()
  }
  const acknowledge = (): void => {
    if (unread > 0) wire.send('a', unread)
    unread = 0
  }
  const stream = new Duplex({
    read: acknowledge,
    write: (chunk: Buffer, _, done) => {
      waiting = { rest: chunk, done }
      flush()
    },
    final: done => {
      wire.send('e')
      done()
    },
    destroy: (error, done) => {
      if (!isClosedThere) wire.send('x')
      wire.closed()
      done(error)
    },
  })
  // The job sent data after its end: the stream is cut, which is all there is to do.
  stream.on('error', () => {})
  return {
    stream,
    data: data => {
      unread += data.length
      if (unread > WINDOW) throw confused()
      if (stream.push(data)) acknowledge()
    },
    delivered: bytes => {
      credit = Math.min(WINDOW, credit + bytes)
      flush()
    },
    end: () => void stream.push(null),
    close: () => {
      isClosedThere = true
      stream.destroy()
    },
  }
}

const confused = (): AppError =>
  new AppError('unavailable', 'The proxy stream of the machine cannot be read.')
