import { z } from 'zod'
import type { GuestAgent } from '../driver.ts'
import { type AgentChannel, AgentRefusal } from './agent-channel.ts'

const READ_BYTES = 1024 * 1024
/** More than a command on the serial line may carry in one go. */
const WRITE_BYTES = 512 * 1024
/** What Proxmox VE reads at most, and one byte to know that there was more. */
const MOST_BYTES = 16 * 1024 ** 2 + 1

const started = z.object({ pid: z.number() })
const status = z.object({
  exited: z.boolean(),
  exitcode: z.number().optional(),
  signal: z.number().optional(),
  'out-data': z.base64().default(''),
  'err-data': z.base64().default(''),
})
const piece = z.object({ count: z.number(), 'buf-b64': z.string(), eof: z.boolean() })
const handle = z.number()

/** The agent inside a machine, as the emulator's API calls it. */
export const agentOver = ({ call }: AgentChannel): GuestAgent => ({
  exec: async ([path, ...arg], input) =>
    started.parse(
      await call('guest-exec', {
        path,
        arg,
        'capture-output': true,
        ...(input ? { 'input-data': input.toString('base64') } : {}),
      }),
    ).pid,

  execStatus: async pid => {
    const answer = await call('guest-exec-status', { pid }).catch(error => {
      if (error instanceof AgentRefusal) return undefined
      throw error
    })
    if (answer === undefined) return undefined
    const { 'out-data': out, 'err-data': err, exited, exitcode, signal } = status.parse(answer)
    return {
      exited,
      ...(exitcode === undefined ? {} : { exitcode }),
      ...(signal === undefined ? {} : { signal }),
      out: Buffer.from(out, 'base64'),
      err: Buffer.from(err, 'base64'),
    }
  },

  readFile: path =>
    withFile(call, { path, mode: 'rb' }, async file => {
      const pieces: Buffer[] = []
      let size = 0
      for (let end = false; !end && size < MOST_BYTES; ) {
        const part = piece.parse(await call('guest-file-read', { handle: file, count: READ_BYTES }))
        const bytes = Buffer.from(part['buf-b64'], 'base64')
        pieces.push(bytes)
        size += bytes.length
        end = part.eof || bytes.length === 0
      }
      return Buffer.concat(pieces)
    }),

  writeFile: (path, content) =>
    withFile(call, { path, mode: 'wb' }, async file => {
      for (let at = 0; at < content.length; at += WRITE_BYTES) {
        const part = content.subarray(at, at + WRITE_BYTES)
        await call('guest-file-write', { handle: file, 'buf-b64': part.toString('base64') })
      }
    }),
})

const withFile = async <T>(
  call: AgentChannel['call'],
  open: { path: string; mode: string },
  work: (file: number) => Promise<T>,
): Promise<T> => {
  const file = handle.parse(await call('guest-file-open', open))
  try {
    return await work(file)
  } finally {
    await call('guest-file-close', { handle: file })
  }
}
