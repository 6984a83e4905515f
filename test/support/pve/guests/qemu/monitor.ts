import { z } from 'zod'
import type { Doorway } from './line-socket.ts'

const message = z.object({
  QMP: z.unknown().optional(),
  event: z.string().optional(),
  data: z.record(z.string(), z.unknown()).default({}),
  return: z.unknown().optional(),
  error: z.object({ desc: z.string() }).optional(),
})

export interface Monitor {
  execute(command: string): Promise<void>
  close(): void
}

/** QEMU's own control channel. Resolves when QEMU takes commands. */
export const openMonitor = async (
  doorway: Doorway,
  onEvent: (event: string, data: Readonly<Record<string, unknown>>) => void,
): Promise<Monitor> => {
  const waiting: { resolve: () => void; reject: (error: Error) => void }[] = []
  let closed = false
  let greet = (): void => {}
  let refuse = (_: Error): void => {}
  const greeted = new Promise<void>((resolve, reject) => {
    greet = resolve
    refuse = reject
  })
  const gone = () => new Error('QEMU is gone')
  const socket = await doorway.accept({
    line: line => {
      const { QMP, event, data, error } = message.parse(JSON.parse(line.toString('utf8')))
      if (QMP !== undefined) greet()
      else if (event !== undefined) onEvent(event, data)
      else if (error) waiting.shift()?.reject(new Error(error.desc))
      else waiting.shift()?.resolve()
    },
    end: () => {
      closed = true
      refuse(gone())
      for (const one of waiting.splice(0)) one.reject(gone())
    },
  })
  const execute = (command: string): Promise<void> =>
    new Promise((resolve, reject) => {
      if (closed) return reject(gone())
      waiting.push({ resolve, reject })
      socket.write(`${JSON.stringify({ execute: command })}\n`)
    })
  await greeted
  await execute('qmp_capabilities')
  return { execute, close: () => socket.close() }
}
