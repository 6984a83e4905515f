import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { AppError } from '../../jobs/errors.ts'
import type { Session, SessionRequest } from '../../ports.ts'
import { createFrameReader, encodeRequest, parseAnswer } from '../../runner/codec.ts'
import type { Answer, Request } from '../../runner/frames.ts'

const OPEN_MS = 60_000

/** Opens a session in a machine that a shim holds, on a connection of its own: a slow reader delays nothing else. */
export const openShimSession = (
  path: string,
  workspace: string,
  { argv, env, terminal }: SessionRequest,
  signal: AbortSignal,
): Promise<Session> =>
  new Promise((resolve, reject) => {
    const session = randomBytes(8).toString('hex')
    const socket = connect({ path, signal })
    let exited = (_code: number | null): void => {}
    const exit = new Promise<number | null>(done => {
      exited = done
    })
    const send = (request: Request, data?: Buffer): boolean => {
      if (socket.destroyed) return true
      const isSent = socket.write(encodeRequest(request))
      return data === undefined ? isSent : socket.write(data)
    }
    const stream = new Duplex({
      read: () => void socket.resume(),
      write: (chunk: Buffer, _encoding, done) => {
        if (send({ kind: 'input', session, bytes: chunk.length }, chunk) || socket.destroyed) done()
        else socket.once('drain', done)
      },
      final: done => {
        send({ kind: 'eof', session })
        done()
      },
      destroy: (error, done) => {
        socket.destroy()
        exited(null)
        done(error)
      },
    })
    let hasEnded = false
    const endOutput = (): void => {
      if (!hasEnded) stream.push(null)
      hasEnded = true
    }
    // Shims of an older Deputy ignore the request.
    const timer = setTimeout(() => socket.destroy(noAnswer()), OPEN_MS)

    const onAnswer = (answer: Answer, data: Buffer): void => {
      if (answer.kind === 'opened') {
        clearTimeout(timer)
        const resize: Session['resize'] = size => void send({ kind: 'resize', session, size })
        resolve({ stream, exit, resize })
      } else if (answer.kind === 'refused' && answer.run === session) {
        reject(
          answer.error === undefined
            ? new AppError('unavailable', answer.reason)
            : AppError.fromBody(answer.error),
        )
        socket.destroy()
      } else if (answer.kind === 'output' && answer.run === session) {
        if (!stream.push(data)) socket.pause()
      } else if (answer.kind === 'ended') {
        exited(answer.code ?? null)
        endOutput()
      }
    }
    const read = createFrameReader({ parse: parseAnswer, onFrame: onAnswer })
    socket.on('data', (chunk: Buffer) => {
      try {
        read(chunk)
      } catch (error) {
        socket.destroy(error instanceof Error ? error : undefined)
      }
    })
    socket.on('error', cause =>
      reject(
        cause instanceof AppError
          ? cause
          : new AppError('unavailable', `The machine cannot be reached: ${cause.message}`, { cause }),
      ),
    )
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new AppError('unavailable', 'The machine has ended.'))
      exited(null)
      endOutput()
    })
    send({
      kind: 'open',
      workspace,
      session,
      argv: [...argv],
      env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ...(terminal === undefined ? {} : { size: terminal }),
    })
  })

const noAnswer = (): AppError =>
  new AppError('unsupported', 'The machine was started by an older Deputy, which has no sessions.', {
    hint: 'Submit the job again.',
  })
