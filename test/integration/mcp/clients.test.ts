import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLI, newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { bridgeEnv } from '../../support/mcp/bridge.ts'
import { ALL_WAYS, type Era, type Wire } from '../../support/mcp/clients.ts'

let directory: string
let daemon: TestDaemon
let url: string
let ready: boolean

beforeAll(async () => {
  directory = newHome()
  daemon = await startDaemon({ directory })
  url = `${(await daemon.client.daemon()).url}/mcp`
  ready = (await daemon.client.doctor(AbortSignal.timeout(30_000))).some(runtime => runtime.ready)
})

afterAll(async () => {
  await daemon.kill('SIGTERM')
  removeDirectory(directory)
})

const token = (name: 'token' | 'token-readonly'): string =>
  readFileSync(join(directory, 'state', name), 'utf8').trim()

const open = async ({ wire, era }: { wire: Wire; era: Era }, name: 'token' | 'token-readonly' = 'token') => {
  const client = new Client(
    { name: `${wire}-${era}`, version: '1' },
    { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } },
  )
  const transport =
    wire === 'stdio'
      ? new StdioClientTransport({
          command: process.execPath,
          args: [CLI, 'mcp'],
          env: bridgeEnv(directory) as Record<string, string>,
          stderr: 'ignore',
        })
      : new StreamableHTTPClientTransport(new URL(url), {
          requestInit: { headers: { authorization: `Bearer ${token(name)}` } },
        })
  await client.connect(transport)
  return {
    call: async (tool: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> => {
      const result = await client.callTool({ name: tool, arguments: args })
      if (result.isError) throw new Error(JSON.stringify(result.content))
      return result.structuredContent as Record<string, unknown>
    },
    client,
    [Symbol.asyncDispose]: () => client.close(),
  }
}

describe('the real daemon', () => {
  it.for(ALL_WAYS)('runs a job for a $era client over $wire', async (way, { skip }) => {
    skip(!ready, 'no runtime is ready on this machine')
    await using session = await open(way)
    const { job_id } = await session.call('submit_job', {
      manifest: {
        task: 'cat in.txt; echo done > out.txt; exit 3',
        files: [{ path: 'in.txt', text: 'hello\n' }],
        artifacts: ['out.txt'],
      },
    })
    let status = await session.call('get_job_status', { job_id, wait_seconds: 50 })
    for (let turn = 0; turn < 3 && !('exit_code' in status); turn++)
      status = await session.call('get_job_status', { job_id, wait_seconds: 50 })
    expect(status).toMatchObject({ status: 'failed', exit_code: 3 })
    const result = await session.call('get_job_result', { job_id })
    expect(result).toMatchObject({
      exit_code: 3,
      output: 'hello\n',
      artifacts: [{ path: 'out.txt', size: 5 }],
    })
    const { contents } = await session.client.readResource({ uri: `job://${job_id}/artifacts/out.txt` })
    expect(contents).toMatchObject([{ text: 'done\n' }])
    expect((await daemon.client.get(String(job_id))).origin).toBe(`mcp:${way.wire}-${way.era}`)
  })

  it('runs a job for a client that only speaks the SSE transport of 2024', async ({ skip }) => {
    skip(!ready, 'no runtime is ready on this machine')
    const connect = async (name: 'token' | 'token-readonly') => {
      const client = new Client({ name: 'sse', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
      await client.connect(
        new SSEClientTransport(new URL(url.replace(/mcp$/, 'sse')), {
          requestInit: { headers: { authorization: `Bearer ${token(name)}` } },
          eventSourceInit: {
            fetch: (input, init) =>
              fetch(input, {
                ...init,
                headers: { ...init.headers, authorization: `Bearer ${token(name)}` },
              }),
          },
        }),
      )
      return client
    }
    const client = await connect('token')
    const { structuredContent } = await client.callTool({
      name: 'submit_job',
      arguments: { manifest: 'echo over sse', wait_seconds: 50 },
    })
    expect(structuredContent).toMatchObject({ status: 'success', output: 'over sse\n' })
    const reader = await connect('token-readonly')
    expect((await reader.listTools()).tools.map(tool => tool.name)).not.toContain('submit_job')
    await Promise.all([client.close(), reader.close()])
    expect((await fetch(url.replace(/mcp$/, 'sse'))).status).toBe(401)
  })

  it('shows every client the same jobs, and keeps them when the client that submitted them is gone', async ({
    skip,
  }) => {
    skip(!ready, 'no runtime is ready on this machine')
    const first = await open({ wire: 'stdio', era: 'modern' })
    await using second = await open({ wire: 'stdio', era: 'legacy' })
    await using third = await open({ wire: 'http', era: 'modern' })
    const { job_id } = await first.call('submit_job', {
      manifest: { task: 'until [ -e stop ]; do sleep 0.1; done', labels: { test: 'shared' }, timeout: 120 },
    })
    await first[Symbol.asyncDispose]()
    for (const other of [second, third])
      expect(await other.call('list_jobs', { label: 'test=shared' })).toMatchObject({ jobs: [{ job_id }] })
    const cancel = await second.call('cancel_job', { job_id })
    expect(cancel.cancelled || cancel.cancel_requested).toBe(true)
    expect(await third.call('get_job_status', { job_id, wait_seconds: 50 })).toMatchObject({
      status: 'cancelled',
    })
  })

  it.each(['modern', 'legacy'] as const)('gives the read-only token only what reads (%s)', async era => {
    await using session = await open({ wire: 'http', era }, 'token-readonly')
    const names = (await session.client.listTools()).tools.map(tool => tool.name)
    expect(names).toContain('list_jobs')
    expect(names).not.toContain('submit_job')
    await expect(session.call('submit_job', { manifest: { task: 'true' } })).rejects.toThrow(/not found/)
  })

  it('does not let a read-only token use the session of a full one', async () => {
    const post = (name: 'token' | 'token-readonly', body: object, session?: string) =>
      fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${token(name)}`,
          ...(session && { 'mcp-session-id': session }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      })
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    }
    const opened = await post('token', { id: 1, method: 'initialize', params })
    const session = opened.headers.get('mcp-session-id') ?? ''
    expect(session).not.toBe('')
    const list = { id: 2, method: 'tools/list' }
    expect((await post('token', list, session)).status).toBe(200)
    expect((await post('token-readonly', list, session)).status).toBe(404)
    expect((await post('token', list, 'no-such-session')).status).toBe(404)
  })

  it('offers by default what was promised, and nothing more', async () => {
    await using session = await open({ wire: 'stdio', era: 'modern' })
    const { tools } = await session.client.listTools()
    await expect(`${JSON.stringify(tools, null, 2)}\n`).toMatchFileSnapshot(
      '../../unit/mcp/__snapshots__/tools-list.json.snap',
    )
  })

  it('refuses MCP without a token, from a foreign page, and under a foreign name', async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' })
    expect((await ask({})).status).toBe(401)
    const authorization = `Bearer ${token('token')}`
    expect((await ask({ authorization, origin: 'https://evil.example' })).status).toBe(403)
    expect((await ask({ authorization, 'content-type': 'text/plain' })).status).toBe(415)
  })
})
