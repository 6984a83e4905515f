import type { SessionRequest, TerminalSize } from '../../src/ports/session.ts'
import { deputy } from '../deputy.ts'

export interface SessionOptions extends SessionRequest {
  onData?(bytes: Uint8Array): void
}

/** A program in the machine of a running job, over a WebSocket. */
export interface BrowserSession {
  /** The exit status; null when the program was killed or the connection was lost. */
  readonly exit: Promise<number | null>
  write(bytes: Uint8Array<ArrayBuffer>): void
  resize(size: TerminalSize): void
  close(): void
}

export const openSession = async (
  jobId: string,
  { argv, env, terminal, onData }: SessionOptions,
): Promise<BrowserSession> => {
  const ticket = await deputy.sessionTicket(jobId, { argv, env, ...(terminal && { terminal }) })
  const address = new URL(`/api/sessions/${ticket}`, location.href)
  address.protocol = address.protocol.replace('http', 'ws')
  const socket = new WebSocket(address)
  socket.binaryType = 'arraybuffer'
  let code: number | null = null
  const exit = new Promise<number | null>(resolve => {
    socket.onclose = () => resolve(code)
  })
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (typeof data !== 'string') onData?.(new Uint8Array(data))
    else code = (JSON.parse(data) as { code: number | null }).code
  }
  await Promise.race([
    new Promise<void>(resolve => {
      socket.onopen = () => resolve()
    }),
    exit,
  ])
  const send = (message: string | Uint8Array<ArrayBuffer>): void => {
    if (socket.readyState === socket.OPEN) socket.send(message)
  }
  return {
    exit,
    write: send,
    resize: size => send(JSON.stringify({ type: 'resize', ...size })),
    close: () => socket.close(),
  }
}
