import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'

/** The control connection of a QEMU (QMP). */
export interface Monitor {
  command(name: string, args?: Readonly<Record<string, unknown>>): Promise<unknown>
  /** Resolves when a migration, in or out, has completed. */
  migrated(): Promise<void>
  close(): void
}

const PAUSE_MS = 5

/** Connects to the socket of a QEMU that may not listen yet. */
export const openMonitor = async (path: string, signal: AbortSignal): Promise<Monitor> => {
  const monitor = monitorOver(await connectWhenListening(path, signal), signal)
  await monitor.command('qmp_capabilities')
  return monitor
}

export const connectWhenListening = async (path: string, signal: AbortSignal): Promise<Socket> => {
  for (;;) {
    signal.throwIfAborted()
    const socket = connect(path)
    const isOpen = await new Promise<boolean>(resolve => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    if (isOpen) return socket
    await sleep(PAUSE_MS, undefined, { signal })
  }
}

const monitorOver = (socket: Socket, signal: AbortSignal): Monitor => {
  type Answer = { return?: unknown; error?: { desc?: string } }
  const waiting: { resolve(answer: Answer): void; reject(error: unknown): void }[] = []
  const onAbort = (): void => void socket.destroy()
  signal.addEventListener('abort', onAbort, { once: true })
  socket.on('error', () => undefined)
  socket.once('close', () => {
    signal.removeEventListener('abort', onAbort)
    const error = signal.aborted ? signal.reason : cutOff()
    for (const one of waiting.splice(0)) one.reject(error)
  })
  let held = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (held + text).split('\n')
    held = lines.pop() ?? ''
    for (const line of lines) {
      const answer = JSON.parse(line) as Answer
      // The rest are the greeting and events.
      if ('return' in answer || 'error' in answer) waiting.shift()?.resolve(answer)
    }
  })
  const command = async (name: string, args?: Readonly<Record<string, unknown>>): Promise<unknown> => {
    if (socket.destroyed) throw signal.aborted ? signal.reason : cutOff()
    const answer = await new Promise<Answer>((resolve, reject) => {
      waiting.push({ resolve, reject })
      socket.write(`${JSON.stringify({ execute: name, arguments: args })}\n`)
    })
    if (answer.error === undefined) return answer.return
    throw new AppError('unavailable', `QEMU refused ${name}: ${answer.error.desc}.`)
  }
  return {
    command,
    migrated: async () => {
      for (;;) {
        const { status, ...more } = (await command('query-migrate')) as Record<string, unknown>
        if (status === 'completed') return
        if (status === 'failed')
          throw new AppError('unavailable', `QEMU cannot move the VM: ${more['error-desc'] ?? 'no reason'}.`)
        await sleep(PAUSE_MS, undefined, { signal })
      }
    },
    close: () => void socket.destroy(),
  }
}

const cutOff = (): AppError => new AppError('unavailable', 'QEMU ended.')
