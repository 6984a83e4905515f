import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { openContainerSession } from '../../../../src/providers/container/container-session.ts'
import type { EngineClient } from '../../../../src/providers/container/engine-client.ts'
import { execInContainer } from '../../../../src/providers/container/exec-session.ts'

const BROKEN = Buffer.from('HTTP/1.1 500 Internal Server Error')
const { signal } = new AbortController()

/** An engine whose streams begin with these bytes, in the answer to the request or after it. */
const engineThatSends = (bytes: Buffer, when: 'head' | 'later') => {
  const sockets: Duplex[] = []
  const client: EngineClient = {
    address: { url: 'unix:///s', source: 'test' },
    json: async () => ({ Id: 'e1', Running: false, ExitCode: 0 }),
    lines: () => Promise.reject(new Error('not used')),
    hijack: async () => {
      const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() })
      sockets.push(socket)
      if (when === 'later') socket.push(bytes)
      return { socket, head: when === 'head' ? bytes : Buffer.alloc(0) }
    },
  }
  return { client, sockets }
}

describe.each(['head', 'later'] as const)('a stream of an engine that cannot be read (%s)', when => {
  it('ends a session with an error', async () => {
    const { client, sockets } = engineThatSends(BROKEN, when)
    const { stream, exit } = await openContainerSession(client, 'c1', { argv: ['sh'], env: {} }, signal)
    // As long as nobody reads the session, nobody could be told.
    await new Promise(resolve => setImmediate(resolve))
    expect(stream.destroyed).toBe(false)
    const failed = once(stream, 'error')
    stream.resume()
    const [error] = await failed
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('cannot be read') })
    expect(await exit).toBeNull()
    expect(sockets[0]?.destroyed).toBe(true)
  })

  it('fails an exec, and closes its connection', async () => {
    const { client, sockets } = engineThatSends(BROKEN, when)
    const request = { container: 'c1', argv: ['true'], input: '', signal }
    await expect(execInContainer(client, request)).rejects.toMatchObject({ code: 'unavailable' })
    expect(sockets[0]?.destroyed).toBe(true)
  })
})
