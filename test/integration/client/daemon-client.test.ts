import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/daemon-client.ts'

const directory = mkdtempSync(join(tmpdir(), 'deputy-client-'))
const socket = join(directory, 's')

type Handler = (request: IncomingMessage, response: ServerResponse) => void
let handler: Handler = (_, response) => response.end('{}')
const server = createServer((request, response) => handler(request, response))

beforeEach(async () => {
  await new Promise<void>(resolve => server.listen(socket, resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
  rmSync(socket, { force: true })
})

const event = (id: string, data: unknown, name = 'output'): string =>
  `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`
const page = (text: string, next_cursor: number, done: boolean) => ({
  job_id: 'j',
  status: 'running',
  pieces: [{ stream: 'stdout', offset: 0, at: '2026-01-01T00:00:00.000Z', text }],
  next_cursor,
  done,
})

const followed = async (revive?: () => Promise<void>): Promise<string> => {
  const client = connect({ socket }, revive ? { revive } : {})
  let text = ''
  try {
    for await (const { pieces } of client.follow('j', { signal: AbortSignal.timeout(20_000) }))
      for (const piece of pieces) if ('data' in piece) text += Buffer.from(piece.data).toString()
  } finally {
    client.close()
  }
  return text
}

describe('the client', () => {
  it("raises the daemon's own errors", async () => {
    handler = (_, response) =>
      response
        .writeHead(404)
        .end('{"error":{"code":"not_found","message":"no","hint":"look","retryable":false}}')
    const client = connect({ socket })
    await expect(client.get('x')).rejects.toMatchObject({ code: 'not_found', message: 'no', hint: 'look' })
    client.close()
  })

  it('does not blame the caller for an answer it cannot read', async () => {
    handler = (_, response) => response.writeHead(502).end('<html>')
    const client = connect({ socket })
    await expect(client.get('x')).rejects.toMatchObject({ code: 'internal' })
    client.close()
  })

  it('says what to do when no daemon listens', async () => {
    const client = connect({ socket: join(directory, 'nobody') })
    await expect(client.list()).rejects.toMatchObject({
      code: 'unavailable',
      hint: expect.stringContaining('deputy'),
    })
    client.close()
  })

  it('continues after a cut stream where it was, without losing or repeating anything', async () => {
    const resumed: (string | undefined)[] = []
    handler = (request, response) => {
      const from = request.headers['last-event-id'] as string
      resumed.push(from)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (from === '0') response.write(event('3', page('one', 3, false)), () => response.destroy())
      else if (from === '3') response.end(event('6', page('two', 6, false)))
      else response.write(event('9', page('end', 9, true)))
    }
    expect(await followed()).toBe('onetwoend')
    expect(resumed).toEqual(['0', '3', '6'])
  })

  it('brings the daemon back when it is gone in the middle', async () => {
    let up = true
    let revived = 0
    handler = (request, response) => {
      if (!up) return request.socket.destroy()
      if (request.headers['last-event-id'] === '0') {
        up = false
        response.write(event('3', page('one', 3, false)), () => response.destroy())
      } else response.end(event('6', page('two', 6, true)))
    }
    const text = await followed(async () => {
      revived += 1
      up = true
    })
    expect(text).toBe('onetwo')
    expect(revived).toBeGreaterThan(0)
  })

  it('stops at a refusal in the stream and at its end', async () => {
    handler = (_, response) =>
      response.end(event('', { error: { code: 'not_found', message: 'gone', retryable: false } }, 'error'))
    await expect(followed()).rejects.toMatchObject({ code: 'not_found' })
    handler = (_, response) => response.write(event('0:end', { status: 'success' }, 'end'))
    expect(await followed()).toBe('')
  })

  it('asks again what may be asked twice, and submits again only with a key', async () => {
    let calls = 0
    handler = (request, response) => {
      calls += 1
      if (calls === 1) request.socket.destroy()
      else response.end('{"job_id":"j"}')
    }
    const client = connect({ socket }, { revive: async () => {} })
    expect(await client.get('j')).toEqual({ job_id: 'j' })
    calls = 0
    expect(await client.submit({ task: 'x', idempotency_key: 'k' })).toEqual({ job_id: 'j' })
    calls = 0
    await expect(client.submit({ task: 'x' })).rejects.toMatchObject({ code: 'unavailable' })
    expect(calls).toBe(1)
    client.close()
  })

  it('reports an upload that the daemon refuses before its end', async () => {
    handler = (request, response) => {
      request.once('data', () => {
        response.writeHead(413, { connection: 'close' })
        response.end('{"error":{"code":"too_large","message":"too large","retryable":false}}')
      })
    }
    const endless = async function* () {
      for (let i = 0; i < 10_000; i++) yield Buffer.alloc(64 * 1024)
    }
    const client = connect({ socket })
    await expect(client.putBlob(endless())).rejects.toMatchObject({ code: 'too_large' })
    client.close()
  })

  it('fails an upload whose source fails', async () => {
    handler = (request, response) => {
      request.on('end', () => response.end('{}'))
      request.resume()
    }
    const broken = async function* () {
      yield Buffer.alloc(10)
      throw new Error('unreadable')
    }
    const client = connect({ socket })
    await expect(client.putBlob(broken())).rejects.toThrow('unreadable')
    client.close()
  })
})
