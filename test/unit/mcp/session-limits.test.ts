import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createMcpHttp, type McpHttp } from '../../../src/mcp/mcp-http.ts'
import { createServerFactory } from '../../../src/mcp/server-factory.ts'
import { createUpdates } from '../../../src/mcp/updates.ts'
import { dependencies } from '../../support/mcp/clients.ts'
import { createMemoryDeputy } from '../../support/memory-deputy.ts'

const MAX_SSE_SESSIONS = 64
const MAX_LEGACY_SESSIONS = 256
const READER = { readOnly: true }
const WRITER = { readOnly: false }

let mcp: McpHttp
let closeUpdates: () => void
let clients: AbortController[]

beforeEach(() => {
  const deputy = createMemoryDeputy()
  const updates = createUpdates(deputy)
  closeUpdates = updates.close
  mcp = createMcpHttp({
    factoryFor: selection => createServerFactory({ ...dependencies(deputy), ...selection }),
    updates,
  })
  clients = []
})

afterEach(async () => {
  for (const client of clients) client.abort()
  await mcp.close()
  closeUpdates()
})

describe('the sessions of /sse', () => {
  const open = async (caller: { readOnly: boolean }, client = new AbortController()) => {
    clients.push(client)
    const { status } = await mcp.fetch(new Request('http://localhost/sse', { signal: client.signal }), caller)
    return { status, client }
  }

  it('are counted for each scope, so the read-only token leaves those of the other', async () => {
    const statuses = await Promise.all(Array.from({ length: MAX_SSE_SESSIONS }, () => open(READER)))
    expect(statuses.every(({ status }) => status === 200)).toBe(true)
    expect((await open(READER)).status).toBe(503)
    expect((await open(WRITER)).status).toBe(200)
  })

  it('are limited although many clients connect at once', async () => {
    const opened = await Promise.all(Array.from({ length: MAX_SSE_SESSIONS + 10 }, () => open(WRITER)))
    expect(opened.filter(({ status }) => status === 200)).toHaveLength(MAX_SSE_SESSIONS)
  })

  it('make room when their client leaves, also before its stream is open', async () => {
    const opened = await Promise.all(Array.from({ length: MAX_SSE_SESSIONS - 1 }, () => open(READER)))
    const hasty = new AbortController()
    const opening = open(READER, hasty)
    hasty.abort()
    await opening
    expect((await open(READER)).status).toBe(200)
    expect((await open(READER)).status).toBe(503)
    opened[0]?.client.abort()
    expect((await open(READER)).status).toBe(200)
  })
})

describe('the sessions of /mcp for older clients', () => {
  const post = (caller: { readOnly: boolean }, body: object, session?: string) =>
    mcp.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(session && { 'mcp-session-id': session }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      }),
      caller,
    )

  const initialize = async (caller: { readOnly: boolean }): Promise<string> => {
    const response = await post(caller, {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
    })
    await response.text()
    return response.headers.get('mcp-session-id') ?? ''
  }

  it('are not ended by clients with the read-only token', async () => {
    const session = await initialize(WRITER)
    for (let i = 0; i <= MAX_LEGACY_SESSIONS; i++) await initialize(READER)
    expect((await post(WRITER, { id: 2, method: 'ping' }, session)).status).toBe(200)
  })

  it('make room once no stream is open, also when one was refused', async () => {
    const session = await initialize(WRITER)
    const stream = async (signal?: AbortSignal) => {
      const headers = { accept: 'text/event-stream', 'mcp-session-id': session }
      const request = new Request('http://localhost/mcp', { headers, ...(signal && { signal }) })
      return (await mcp.fetch(request, WRITER)).status
    }
    const client = new AbortController()
    expect([await stream(client.signal), await stream()]).toEqual([200, 409])
    client.abort()
    for (let i = 0; i < MAX_LEGACY_SESSIONS; i++) await initialize(WRITER)
    expect((await post(WRITER, { id: 2, method: 'ping' }, session)).status).toBe(404)
  })
})
