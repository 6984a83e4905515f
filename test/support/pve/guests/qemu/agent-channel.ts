import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Doorway } from './line-socket.ts'

const answer = z.object({ return: z.unknown().optional(), error: z.object({ desc: z.string() }).optional() })

/** The agent said no; the message is its own. */
export class AgentRefusal extends Error {
  override name = 'AgentRefusal'
}

export interface AgentChannel {
  call(command: string, args?: Record<string, unknown>): Promise<unknown>
  close(): void
}

/**
 * Speaks to the guest agent, one command at a time. Nobody tells when an agent starts
 * anew, so each command is preceded by a synchronisation that throws away whatever is left of older answers.
 */
export const openAgentChannel = async (doorway: Doorway, timeoutMs: number): Promise<AgentChannel> => {
  let waiting: { take: (line: Buffer) => void; fail: (error: Error) => void } | undefined
  let turn: Promise<unknown> = Promise.resolve()
  let closed = false
  const socket = await doorway.accept({
    line: line => waiting?.take(line),
    end: () => {
      closed = true
      waiting?.fail(new Error('the machine is gone'))
    },
  })

  /** Sends, and reads lines until one is what `pick` looks for. */
  const exchange = <T>(bytes: Buffer, pick: (line: Buffer) => T | undefined): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const fail = (error: Error) => {
        clearTimeout(timer)
        waiting = undefined
        reject(error)
      }
      const timer = setTimeout(() => fail(new Error('got timeout')), timeoutMs)
      waiting = {
        fail,
        take: line => {
          const found = pick(line)
          if (found === undefined) return
          clearTimeout(timer)
          waiting = undefined
          resolve(found)
        },
      }
      if (closed) fail(new Error('the machine is gone'))
      else socket.write(bytes)
    })

  const converse = async (command: string, args: Record<string, unknown> | undefined): Promise<unknown> => {
    const id = randomInt(2 ** 47)
    // 0xFF is no JSON: it makes the agent's parser start anew, and marks the answer.
    await exchange(
      Buffer.concat([Buffer.from([0xff]), encode('guest-sync-delimited', { id })]),
      line => line.includes(0xff) && decode(line.subarray(line.lastIndexOf(0xff) + 1))?.return === id,
    )
    const { error, return: value } = await exchange(encode(command, args), decode)
    if (error) throw new AgentRefusal(error.desc)
    return value
  }

  return {
    call: (command, args) => {
      const result = turn.then(() => converse(command, args))
      turn = result.catch(() => {})
      return result
    },
    close: () => socket.close(),
  }
}

const encode = (execute: string, args: Record<string, unknown> | undefined): Buffer =>
  Buffer.from(`${JSON.stringify({ execute, ...(args ? { arguments: args } : {}) })}\n`)

const decode = (line: Buffer): z.output<typeof answer> | undefined => {
  try {
    return answer.safeParse(JSON.parse(line.toString('utf8'))).data
  } catch {
    return undefined
  }
}
