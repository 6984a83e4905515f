import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { field, text } from './engine-address.ts'
import type { EngineClient } from './engine-client.ts'
import { createStreamReader } from './stream-frames.ts'

export interface StreamRequest {
  readonly container: string
  /** Sent to stdin, which is then closed. Never part of the inspectable configuration. */
  readonly input: string | AsyncIterable<unknown>
  onOpen?(): void
  /** May return a promise to pause the stream, or `enough` to end without waiting for the exit. */
  onStdout?(chunk: Buffer): undefined | 'enough' | Promise<void>
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

export interface ExecRequest extends StreamRequest {
  readonly argv: readonly string[]
}

const MAX_STDERR = 16_384
const EXIT_TRIES = 100
const EXIT_PAUSE_MS = 20

/** Runs a program in a running container. Rejects for failures of the engine, never of the program. */
export const execInContainer = async (
  client: EngineClient,
  request: ExecRequest,
): Promise<{ code: number; stderr: string }> => {
  const deadline = createDeadline([request.signal], request.timeoutMs)
  const { signal } = deadline
  try {
    const created = await client.json({
      method: 'POST',
      path: `/containers/${request.container}/exec`,
      body: { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: request.argv },
      signal,
    })
    const id = text(created, 'Id') ?? ''
    const opened = await client.hijack({
      method: 'POST',
      path: `/exec/${id}/start`,
      body: { Detach: false, Tty: false },
      signal,
    })
    const { stderr, enough } = await exchangeStreams(opened, request, signal)
    return { code: enough ? 0 : await exitCode(client, id, signal), stderr }
  } catch (error) {
    if (deadline.expired)
      throw new AppError('timeout', `The container ${request.container} did not answer in time.`)
    throw error
  } finally {
    deadline.clear()
  }
}

/** Sends the input of a request to a process of a container, and hands over what the process prints. */
export const exchangeStreams = (
  { socket, head }: { socket: Duplex; head: Buffer },
  request: StreamRequest,
  signal: AbortSignal,
): Promise<{ stderr: string; enough: boolean }> =>
  new Promise((resolve, reject) => {
    let stderr = ''
    let isOver = false
    const end = (settle: () => void): void => {
      if (isOver) return
      isOver = true
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      settle()
    }
    const onAbort = (): void => end(() => reject(signal.reason))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const read = createStreamReader((stream, data) => {
      if (isOver) return
      if (stream === 'stderr') {
        stderr = (stderr + data.toString('utf8')).slice(-MAX_STDERR)
        return
      }
      const busy = request.onStdout?.(data)
      if (busy === 'enough') end(() => resolve({ stderr, enough: true }))
      else if (busy) {
        socket.pause()
        const resume = (): void => void socket.resume()
        busy.then(resume, resume)
      }
    })
    socket.on('error', error => end(() => reject(cutOff(error))))
    socket.on('close', () => end(() => resolve({ stderr, enough: false })))
    socket.on('end', () => end(() => resolve({ stderr, enough: false })))
    const take = (chunk: Buffer): void => {
      try {
        read(chunk)
      } catch (error) {
        end(() => reject(error))
      }
    }
    socket.on('data', take)
    request.onOpen?.()
    if (head.length > 0) take(head)
    if (typeof request.input === 'string') socket.end(request.input)
    else
      pipeline(request.input, socket).catch((error: NodeJS.ErrnoException) => {
        // A program that ends before it has read everything has its reason, which its exit status tells.
        if (!CLOSED.has(error.code ?? '')) end(() => reject(error))
      })
  })

const CLOSED = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED'])

/** The stream ends a moment before the engine has noted the exit status. */
export const exitCode = async (client: EngineClient, id: string, signal: AbortSignal): Promise<number> => {
  for (let tries = 0; tries < EXIT_TRIES; tries++) {
    const state = await client.json({ path: `/exec/${id}/json`, signal })
    const code = field(state, 'ExitCode')
    if (field(state, 'Running') === false && typeof code === 'number') return code
    await sleep(EXIT_PAUSE_MS, undefined, { signal })
  }
  return -1
}

const cutOff = (cause: Error): AppError =>
  new AppError('unavailable', `The connection to the container was cut: ${cause.message}.`, { cause })
