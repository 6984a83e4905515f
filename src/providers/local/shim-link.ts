import { connect } from 'node:net'
import { AppError, toAppError } from '../../jobs/errors.ts'
import { createFrameReader, encodeRequest, parseAnswer, versionProblem } from '../../runner/codec.ts'
import { type Answer, OLDEST, type Request, type ShimState, VERSION } from '../../runner/frames.ts'

export type ShimEvent = Answer | { readonly kind: 'closed'; readonly reason?: string }

/** The daemon's end of the connection to one shim. */
export interface ShimLink {
  readonly id: string
  readonly pid: number
  /** The first user id of its machines when the daemon is root. */
  readonly uid: number | null
  readonly capacity: number
  readonly build: string
  /** The machines that it holds or was chosen for, each with its active run, or null. */
  readonly machines: Map<string, string | null>
  /** The shim gets no more machines and exits when it holds none. */
  retiring: boolean
  /** Monotonic time at which the shim last became free. */
  idleSince: number
  readonly closed: boolean
  send(request: Request): void
  /** Returns how to stop listening. */
  listen(listener: (event: ShimEvent) => void): () => void
  disconnect(): void
}

const HELLO_MS = 20_000

export const connectShim = (path: string): Promise<ShimLink> =>
  new Promise((resolve, reject) => {
    const socket = connect(path)
    const listeners = new Set<(event: ShimEvent) => void>()
    let link: ShimLink | undefined
    let closed = false
    let failure: string | undefined
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), HELLO_MS)
    const emit = (event: ShimEvent): void => {
      for (const listener of [...listeners]) listener(event)
    }
    const send = (request: Request): void => {
      if (socket.destroyed) return
      const line = Buffer.from(encodeRequest(request))
      // Wipe the buffer after sending: it may contain secrets.
      socket.write(line, () => line.fill(0))
    }
    const listen: ShimLink['listen'] = listener => {
      listeners.add(listener)
      if (closed) queueMicrotask(() => listener({ kind: 'closed' }))
      return () => listeners.delete(listener)
    }

    const onHello = (hello: Extract<Answer, { kind: 'hello' }>): void => {
      const problem = versionProblem(hello, { their: 'process that holds jobs' })
      if (problem !== undefined) throw new AppError('unsupported', problem)
      if (hello.shim === undefined) throw new AppError('unsupported', 'It is not a shim that answers.')
      clearTimeout(timer)
      link = {
        ...linkState(hello.shim),
        get closed() {
          return closed
        },
        send,
        listen,
        disconnect: () => socket.end(),
      }
      resolve(link)
    }

    const onAnswer = (answer: Answer): void => {
      if (answer.kind === 'failed') throw new AppError('unsupported', answer.reason)
      if (answer.kind === 'hello') onHello(answer)
      else if (link !== undefined) {
        noteAnswer(link, answer)
        emit(answer)
      }
    }
    const read = createFrameReader({ parse: parseAnswer, onFrame: onAnswer })
    socket.on('data', (chunk: Buffer) => {
      try {
        // Shims of the first version greet with a JSON object.
        if (link === undefined && chunk[0] === BRACE)
          throw new AppError('unsupported', 'It was started by an older Deputy.')
        read(chunk)
      } catch (error) {
        socket.destroy(toAppError(error))
      }
    })
    socket.on('error', cause => {
      failure = cause.message
      reject(new AppError('unavailable', `A shim cannot be reached: ${failure}`, { cause }))
    })
    socket.on('close', () => {
      clearTimeout(timer)
      closed = true
      reject(new AppError('unavailable', 'The shim closed the connection.'))
      emit({ kind: 'closed', ...(failure !== undefined && { reason: failure }) })
    })
    send({ kind: 'hello', version: VERSION, oldest: OLDEST, mark: 'shim', owner: 'daemon' })
  })

const BRACE = '{'.charCodeAt(0)

const linkState = ({ machines, ...shim }: ShimState) => ({
  ...shim,
  machines: new Map(machines.map(({ workspace, run }) => [workspace, run])),
  idleSince: performance.now(),
})

const ENDS: ReadonlySet<Answer['kind']> = new Set(['exit', 'lost', 'refused'])

const noteAnswer = (link: ShimLink, answer: Answer): void => {
  if (answer.kind === 'leaving') link.retiring = true
  else if (answer.kind === 'released') {
    link.machines.delete(answer.workspace)
    if (link.machines.size === 0) link.idleSince = performance.now()
  } else if ('run' in answer && ENDS.has(answer.kind))
    for (const [machine, run] of link.machines) if (run === answer.run) link.machines.set(machine, null)
}
