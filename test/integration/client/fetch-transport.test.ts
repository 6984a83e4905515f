import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCalls } from '../../../src/client/create-calls.ts'
import { createFetchTransport } from '../../../src/client/fetch-transport.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void
let handler: Handler
const server = createServer((request, response) => handler(request, response))
const answers: (number | undefined)[] = []
let base = ''

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  answers.length = 0
})

const client = (address = base) => {
  const transport = createFetchTransport({
    base: address,
    headers: () => ({ authorization: 'Bearer secret' }),
    onAnswer: status => answers.push(status),
  })
  return createCalls({ transport, retry: transport.json, giveUpMs: 20_000 })
}

const refusal = (response: ServerResponse, status: number, code: string): void => {
  response.writeHead(status).end(JSON.stringify({ error: { code, message: 'no', hint: 'look' } }))
}

const page = (text: string, next_cursor: number, done: boolean): string => {
  const pieces = [{ stream: 'stdout', offset: 0, at: '2026-01-01T00:00:00.000Z', text }]
  const data = JSON.stringify({ job_id: 'j', status: 'running', pieces, next_cursor, done })
  return `id: ${next_cursor}\nevent: output\ndata: ${data}\n\n`
}

describe('the client in a browser', () => {
  it('sends the session and JSON, and reads JSON and empty answers', async () => {
    const seen: unknown[] = []
    handler = async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { authorization, 'content-type': type } = request.headers
      seen.push([request.method, request.url, authorization, type, body])
      if (request.method === 'DELETE') response.writeHead(204).end()
      else response.end('{"jobs":[],"next_cursor":null}')
    }
    expect(await client().list({ status: 'failed', limit: 6 })).toEqual({ jobs: [], next_cursor: null })
    await client().submit({ task: 'x' })
    expect(await client().delete('a/b')).toBeUndefined()
    expect(seen).toEqual([
      ['GET', '/api/jobs?status=failed&limit=6', 'Bearer secret', undefined, ''],
      ['POST', '/api/jobs', 'Bearer secret', 'application/json', '{"task":"x"}'],
      ['DELETE', '/api/jobs/a%2Fb', 'Bearer secret', undefined, ''],
    ])
    expect(answers).toEqual([200, 200, 204])
  })

  it("raises the daemon's own errors, and reports the status", async () => {
    handler = (_, response) => refusal(response, 401, 'unauthorized')
    await expect(client().get('x')).rejects.toMatchObject({ code: 'unauthorized', hint: 'look' })
    handler = (_, response) => response.writeHead(502).end('<html>')
    await expect(client().get('x')).rejects.toMatchObject({ code: 'internal' })
    expect(answers).toEqual([401, 502])
  })

  it('reports a daemon that is away or does not answer in time', async () => {
    await expect(client('http://127.0.0.1:1').get('x')).rejects.toMatchObject({ code: 'unavailable' })
    handler = () => {}
    await expect(client().daemon(50)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('did not answer'),
    })
    expect(answers).toEqual([undefined, undefined])
  })

  it('continues a cut stream where it was', async () => {
    const resumed: (string | undefined)[] = []
    handler = (request, response) => {
      const from = request.headers['last-event-id'] as string
      resumed.push(from)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (from === '0') response.write(page('one', 3, false), () => response.destroy())
      else if (from === '3') response.end(page('two', 6, false))
      else response.write(page('end', 9, true))
    }
    let text = ''
    for await (const { pieces } of client().follow('j', { signal: AbortSignal.timeout(20_000) }))
      for (const piece of pieces) if ('data' in piece) text += new TextDecoder().decode(piece.data)
    expect(text).toBe('onetwoend')
    expect(resumed).toEqual(['0', '3', '6'])
  })

  it('stops when it is told to, before and after the answer', async () => {
    handler = (_, response) => response.writeHead(200).write(page('one', 3, false))
    const stop = new AbortController()
    const follow = async (): Promise<void> => {
      for await (const _ of client().follow('j', { signal: stop.signal })) stop.abort(new Error('enough'))
    }
    await expect(follow()).rejects.toThrow('enough')
    await expect(client().get('x', AbortSignal.abort(new Error('left')))).rejects.toThrow('left')
    expect(answers).toEqual([200])
  })
})
