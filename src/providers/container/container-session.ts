import { randomBytes } from 'node:crypto'
import { Duplex } from 'node:stream'
import { WORKSPACE } from '../../jobs/paths.ts'
import type { Session, SessionRequest } from '../../ports.ts'
import { sizeCommand } from '../../runner/terminal-command.ts'
import { text } from './engine-address.ts'
import type { EngineClient } from './engine-client.ts'
import { execInContainer, exitCode } from './exec-session.ts'
import { createStreamReader } from './stream-frames.ts'

/** Runs a program in a container through the engine, which makes the terminal. */
export const openContainerSession = async (
  client: EngineClient,
  container: string,
  { argv, env, terminal }: SessionRequest,
  signal: AbortSignal,
): Promise<Session> => {
  const pidFile = `/tmp/.session-${randomBytes(8).toString('hex')}`
  const Tty = terminal !== undefined
  // The engine takes a size only once the program runs, and older engines not at all before.
  const setSize = terminal === undefined ? '' : `${sizeCommand(terminal)};`
  const created = await client.json({
    method: 'POST',
    path: `/containers/${container}/exec`,
    body: {
      ...{ AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty },
      Cmd: ['sh', '-c', `echo $$ >${pidFile}; ${setSize} exec "$@"`, 'sh', ...argv],
      Env: Object.entries({ HOME: WORKSPACE, ...env }).map(([name, value]) => `${name}=${value}`),
      WorkingDir: WORKSPACE,
    },
    signal,
  })
  const id = text(created, 'Id') ?? ''
  const { socket, head } = await client.hijack({
    method: 'POST',
    path: `/exec/${id}/start`,
    body: { Detach: false, Tty },
    signal,
  })
  const resize: Session['resize'] = ({ columns, rows }) => {
    if (!Tty) return
    const query = { w: String(columns), h: String(rows) }
    // A program that has just ended has no terminal any more.
    client.json({ method: 'POST', path: `/exec/${id}/resize`, query, signal }).catch(() => {})
  }
  /** An engine lets a program run on when the client disconnects. */
  const kill = (): void => {
    const end = `pid=$(cat ${pidFile}) && rm -f ${pidFile} && { kill -HUP -$pid || kill -HUP $pid; }`
    const request = { container, argv: ['sh', '-c', end], input: '', signal, timeoutMs: KILL_MS }
    execInContainer(client, request).catch(() => {})
  }
  const stream = joined(socket, head, Tty)
  const exit = new Promise<number | null>(resolve => {
    stream.once('close', () => resolve(null))
    stream.once('end', () => {
      exitCode(client, id, signal).then(
        code => resolve(code < 0 ? null : code),
        () => resolve(null),
      )
    })
  })
  stream.once('close', kill)
  return { stream, exit, resize }
}

const KILL_MS = 10_000

/** The raw stream of a terminal, or both streams of a program without one. */
const joined = (socket: Duplex, head: Buffer, isRaw: boolean): Duplex => {
  const stream: Duplex = new Duplex({
    autoDestroy: false,
    // From the first read on: by then somebody listens for errors.
    read: () => {
      if (socket.listenerCount('data') === 0) begin()
      socket.resume()
    },
    write: (chunk: Buffer, encoding, done) => void socket.write(chunk, encoding, () => done()),
    final: done => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  const push = (data: Buffer): void => {
    if (!stream.push(data)) socket.pause()
  }
  const read = isRaw ? push : createStreamReader((_stream, data) => push(data))
  const take = (chunk: Buffer): void => {
    try {
      read(chunk)
    } catch (error) {
      stream.destroy(error as Error)
    }
  }
  const begin = (): void => {
    socket.on('data', take)
    if (head.length > 0) take(head)
  }
  let hasEnded = false
  const end = (): void => {
    if (!hasEnded) stream.push(null)
    hasEnded = true
  }
  socket.on('error', end)
  socket.on('end', end)
  socket.on('close', end)
  return stream
}
