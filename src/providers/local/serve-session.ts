import type { Socket } from 'node:net'
import { AppError } from '../../jobs/errors.ts'
import { encodeAnswer } from '../../runner/codec.ts'
import type { Answer, Request } from '../../runner/frames.ts'
import type { HeldMachine } from './held-machine.ts'
import { toLocalError } from './local-error.ts'
import type { LocalSession } from './local-session.ts'

type OpenRequest = Extract<Request, { kind: 'open' }>

/** Serves the requests of a session on one connection to the shim. The program ends with the connection. */
export const serveSession = (
  socket: Socket,
  findMachine: (workspace: string) => HeldMachine | undefined,
): {
  /** False for a request that belongs to no session. */ handle(request: Request, data: Buffer): boolean
} => {
  let session: LocalSession | undefined
  let offset = 0
  const answer = (frame: Answer, data?: Buffer): boolean => {
    if (socket.destroyed) return true
    const isWritten = socket.write(encodeAnswer(frame))
    return data === undefined ? isWritten : socket.write(data)
  }

  const open = async ({ workspace, session: id, size, argv, env }: OpenRequest): Promise<void> => {
    const machine = findMachine(workspace)
    if (machine === undefined) throw new AppError('not_found', `No machine ${workspace} is here.`)
    const opened = await machine.open(id, {
      argv,
      env: Object.fromEntries(
        env.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      ),
      ...(size === undefined ? {} : { terminal: size }),
    })
    if (socket.destroyed) return opened.kill()
    session = opened
    socket.once('close', opened.kill)
    answer({ kind: 'opened', session: id })
    opened.output.on('data', (chunk: Buffer) => {
      // A reader that is behind pauses the program.
      const keepsUp = answer(
        { kind: 'output', run: id, stream: 'stdout', offset, bytes: chunk.length },
        chunk,
      )
      offset += chunk.length
      if (keepsUp) return
      opened.output.pause()
      socket.once('drain', () => opened.output.resume())
    })
    const code = await opened.ended
    answer({ kind: 'ended', session: id, ...(code === null ? {} : { code }) })
    socket.end()
  }

  return {
    handle: (request, data) => {
      switch (request.kind) {
        case 'open':
          open(request).catch(error => {
            const body = toLocalError(error).toBody()
            answer({ kind: 'refused', run: request.session, fault: true, reason: body.message, error: body })
          })
          return true
        case 'input':
          if (session?.input.write(data) === false) {
            socket.pause()
            session.input.once('drain', () => socket.resume())
          }
          return true
        case 'eof': {
          const input = session?.input
          input?.write('', () => input.destroy())
          return true
        }
        case 'resize':
          session?.resize(request.size)
          return true
        default:
          return false
      }
    },
  }
}
