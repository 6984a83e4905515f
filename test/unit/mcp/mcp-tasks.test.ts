import { describe, expect, it } from 'vitest'
import { createMcpService } from '../../../src/mcp/mcp-service.ts'
import { dependencies } from '../../support/mcp/clients.ts'
import { createMemoryDeputy } from '../../support/memory-deputy.ts'

const TASKS = 'io.modelcontextprotocol/tasks'

interface Answer {
  result?: Record<string, unknown>
  error?: { code: number; message: string }
}

/** Raw requests of the current revision: the SDK's client does not follow tasks itself. */
const setUp = () => {
  const deputy = createMemoryDeputy()
  const mcp = createMcpService(dependencies(deputy))
  const request = async (
    method: string,
    params: Record<string, unknown>,
    { tasks = true, readOnly = false } = {},
  ): Promise<Answer> => {
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': tasks ? { extensions: { [TASKS]: {} } } : {},
        },
      },
    }
    const response = await mcp.http.fetch(
      new Request('http://127.0.0.1/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          'mcp-name': String(params.taskId ?? params.name ?? ''),
        },
        body: JSON.stringify(body),
      }),
      { readOnly },
    )
    return (await response.json()) as Answer
  }
  const submit = async () => {
    const { result } = await request('tools/call', {
      name: 'submit_job',
      arguments: { manifest: { task: 'make' } },
    })
    return result!
  }
  return { deputy, request, submit }
}

describe('the tasks extension', () => {
  it('is advertised', async () => {
    const { result } = await setUp().request('server/discover', {})
    expect(result).toMatchObject({ capabilities: { extensions: { [TASKS]: {} } } })
  })

  it('gives a client that declares it a task whose id is the job', async () => {
    const { deputy, submit } = setUp()
    const result = await submit()
    expect(result).toMatchObject({
      resultType: 'task',
      status: 'working',
      ttlMs: null,
      statusMessage: 'pending',
    })
    expect(result.structuredContent).toMatchObject({ job_id: result.taskId })
    expect((await deputy.get(String(result.taskId))).status).toBe('pending')
  })

  it('gives nobody else a task', async () => {
    const { request } = setUp()
    const { result } = await request(
      'tools/call',
      { name: 'submit_job', arguments: { manifest: { task: 'make' } } },
      { tasks: false },
    )
    expect(result).toMatchObject({ resultType: 'complete' })
    expect(result).not.toHaveProperty('taskId')
  })

  it('tells how a task goes on, and its result when it is done', async () => {
    const { deputy, request, submit } = setUp()
    const taskId = String((await submit()).taskId)
    deputy.start(taskId, 'compiling')
    expect((await request('tasks/get', { taskId })).result).toMatchObject({
      taskId,
      status: 'working',
      statusMessage: 'running: compiling',
    })
    deputy.print(taskId, 'out')
    deputy.finish(taskId, { status: 'failed', exitCode: 2 })
    const { result } = await request('tasks/get', { taskId })
    expect(result).toMatchObject({
      status: 'completed',
      result: {
        resultType: 'complete',
        structuredContent: { status: 'failed', exit_code: 2, output: 'out' },
      },
    })
  })

  it('cancels the job with its task, any number of times', async () => {
    const { deputy, request, submit } = setUp()
    const taskId = String((await submit()).taskId)
    expect(await request('tasks/cancel', { taskId })).toHaveProperty('result')
    expect(await request('tasks/cancel', { taskId })).toHaveProperty('result')
    expect((await deputy.get(taskId)).status).toBe('cancelled')
    expect((await request('tasks/get', { taskId })).result).toMatchObject({ status: 'cancelled' })
  })

  it('cancels nothing for a read-only caller', async () => {
    const { deputy, request, submit } = setUp()
    const taskId = String((await submit()).taskId)
    expect(await request('tasks/cancel', { taskId }, { readOnly: true })).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('read-only') },
    })
    expect((await deputy.get(taskId)).status).toBe('pending')
  })

  it('acknowledges input, which jobs never ask for', async () => {
    const { request, submit } = setUp()
    const { taskId } = await submit()
    expect(
      await request('tasks/update', { taskId, inputResponses: { a: { action: 'accept' } } }),
    ).toHaveProperty('result')
  })

  it('refuses unknown tasks, undeclared clients and methods that are gone', async () => {
    const { request, submit } = setUp()
    const { taskId } = await submit()
    expect(await request('tasks/get', { taskId: 'nope' })).toMatchObject({ error: { code: -32602 } })
    expect(await request('tasks/get', { taskId }, { tasks: false })).toMatchObject({
      error: { code: -32021 },
    })
    expect(await request('tasks/result', { taskId })).toMatchObject({ error: { code: -32601 } })
    expect(await request('tasks/list', {})).toMatchObject({ error: { code: -32601 } })
  })
})
