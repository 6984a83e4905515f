import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { agentOver } from '../../../support/pve/guests/qemu/agent.ts'
import { type AgentChannel, openAgentChannel } from '../../../support/pve/guests/qemu/agent-channel.ts'
import { type Doorway, openDoorway } from '../../../support/pve/guests/qemu/line-socket.ts'

interface Call {
  execute: string
  arguments?: Record<string, unknown>
}

describe('the channel to a guest agent', () => {
  let directory: string
  let doorway: Doorway
  let guest: Socket
  let channel: AgentChannel
  let calls: Call[]
  let synchronise: (id: unknown) => void
  let answer: (call: Call) => unknown

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'agent-'))
    doorway = await openDoorway(join(directory, 'socket'))
    calls = []
    synchronise = id => void guest.write(Buffer.from(`\xff{"return": ${id}}\n`, 'latin1'))
    answer = () => ({ return: {} })
    guest = connect(join(directory, 'socket'))
    let text = ''
    guest.setEncoding('latin1').on('data', chunk => {
      text += chunk
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n')) {
        const call = JSON.parse(text.slice(0, at).replace(/^.*\xff/, '')) as Call
        text = text.slice(at + 1)
        if (call.execute === 'guest-sync-delimited') synchronise(call.arguments!.id)
        else {
          calls.push(call)
          const given = answer(call)
          if (given !== undefined) guest.write(`${JSON.stringify(given)}\n`)
        }
      }
    })
    channel = await openAgentChannel(doorway, 300)
  })

  afterEach(() => {
    channel.close()
    guest.destroy()
    doorway.close()
    rmSync(directory, { recursive: true, force: true })
  })

  it('throws away what an earlier command left behind', async () => {
    guest.write('{"return": "of long ago"}\n{"return": ')
    answer = () => ({ return: 'of now' })
    expect(await channel.call('guest-info')).toBe('of now')
  })

  it('waits for the answer to its own synchronisation', async () => {
    synchronise = id => {
      guest.write(Buffer.from(`\xff{"return": 1}\n`, 'latin1'))
      guest.write(Buffer.from(`\xff{"return": ${id}}\n`, 'latin1'))
    }
    answer = () => ({ return: 2 })
    expect(await channel.call('guest-info')).toBe(2)
  })

  it('says what the agent said', async () => {
    answer = () => ({ error: { class: 'GenericError', desc: "failed to open file '/x' (mode: 'rb')" } })
    await expect(agentOver(channel).readFile('/x')).rejects.toThrow("failed to open file '/x' (mode: 'rb')")
  })

  it('gives up on an agent that is silent, and goes on with the next command', async () => {
    answer = () => undefined
    await expect(channel.call('guest-info')).rejects.toThrow('timeout')
    answer = () => ({ return: 'awake' })
    expect(await channel.call('guest-info')).toBe('awake')
  })

  it('sends one command at a time', async () => {
    let open = 0
    let most = 0
    answer = () => {
      most = Math.max(most, ++open)
      setTimeout(() => {
        open--
        guest.write('{"return": {}}\n')
      }, 5)
      return undefined
    }
    await Promise.all(Array.from({ length: 5 }, (_, index) => channel.call(`guest-${index}`)))
    expect(calls.map(call => call.execute)).toEqual(['guest-0', 'guest-1', 'guest-2', 'guest-3', 'guest-4'])
    expect(most).toBe(1)
  })

  it('fails what waits when the machine goes', async () => {
    answer = () => {
      guest.destroy()
      return undefined
    }
    await expect(channel.call('guest-info')).rejects.toThrow('gone')
    await expect(channel.call('guest-info')).rejects.toThrow('gone')
  })

  it('closes a file whose writing failed', async () => {
    answer = ({ execute }) =>
      execute === 'guest-file-open'
        ? { return: 1000 }
        : execute === 'guest-file-write'
          ? { error: { desc: 'No space left on device' } }
          : { return: {} }
    await expect(agentOver(channel).writeFile('/x', Buffer.from('x'))).rejects.toThrow('No space left')
    expect(calls.at(-1)).toEqual({ execute: 'guest-file-close', arguments: { handle: 1000 } })
  })

  it('knows a process that nobody started', async () => {
    answer = () => ({ error: { desc: 'PID ld does not exist' } })
    expect(await agentOver(channel).execStatus(42)).toBeUndefined()
  })
})
