import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { TOOLSET_NAMES } from '../../../src/mcp/bridge/toolset-names.ts'
import { defineTool, reads } from '../../../src/mcp/tool.ts'
import { jobsToolset } from '../../../src/mcp/tools/jobs/jobs-toolset.ts'
import { aliases } from '../../../src/mcp/tools/proxmox/aliases.ts'
import { TABLE } from '../../../src/mcp/tools/proxmox/table/toolset-table.ts'
import { ALL_WAYS, type ConnectOptions, connect } from '../../support/mcp/clients.ts'

const call = async (
  { client }: Awaited<ReturnType<typeof connect>>,
  name: string,
  args?: Record<string, unknown>,
) => {
  const result = await client.callTool({ name, ...(args && { arguments: args }) })
  const [first] = result.content
  const text = first?.type === 'text' ? first.text : ''
  return { ...result, text, data: (result.structuredContent ?? {}) as Record<string, unknown> }
}

const SAY = defineTool({
  name: 'say',
  title: 'Say',
  description: 'Says something',
  annotations: reads(),
  input: z.strictObject({}),
  run: async () => ({ data: { said: true } }),
})

it('the bridge knows every toolset by name', () => {
  const made = [...TABLE, aliases].map(({ name }) => name)
  expect([...TOOLSET_NAMES].sort()).toEqual(
    ['default', 'all', 'jobs', 'cluster', 'proxmox', 'proxmox-all', ...made].sort(),
  )
})

const until = async (condition: () => boolean, what: string) => {
  const deadline = Date.now() + 30_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited too long for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

describe.each(ALL_WAYS)('MCP over $wire for $era clients', way => {
  const open = (more: Partial<ConnectOptions> = {}) => connect({ ...way, ...more })

  it('says who it is, how to use it and what is configured', async () => {
    await using session = await open()
    expect(session.client.getServerVersion()).toMatchObject({ name: 'deputy', version: '1.2.3' })
    const told = session.client.getInstructions() ?? ''
    expect(told).toContain('Runtimes ready: sandbox.')
    expect(told).toContain('Not ready: proxmox (PROXMOX_HOST is not set).')
    expect(told).toContain('Secrets, by name: API_KEY.')
    expect(Buffer.byteLength(told)).toBeLessThan(2048)
  })

  it('carries a job from submit to result', async () => {
    await using session = await open()
    const submitted = await call(session, 'submit_job', { manifest: { task: 'make' } })
    const id = String(submitted.data.job_id)
    expect(submitted.data).toMatchObject({ status: 'pending', runtime: 'auto', log_uri: `job://${id}/log` })
    expect(submitted.data.next).toContain('get_job_result')
    expect(JSON.parse(submitted.text)).toEqual(submitted.data)
    expect(submitted.content).toHaveLength(1)
    expect((await session.deputy.get(id)).origin).toBe('mcp:test-client')

    session.deputy.start(id, 'compiling')
    expect((await call(session, 'get_job_status', { job_id: id })).data).toMatchObject({
      status: 'running',
      progress: 'compiling',
    })
    session.deputy.print(id, 'hello ')
    session.deputy.print(id, 'wörld\n', 'stderr')
    const streamed = await call(session, 'stream_job_output', { job_id: id })
    expect(streamed.data).toMatchObject({ text: 'hello wörld\n', next_cursor: 13, done: false })

    session.deputy.finish(id, { status: 'failed', exitCode: 3, artifacts: { 'out/a b.txt': 'result' } })
    const result = await call(session, 'get_job_result', { job_id: id })
    expect(result.isError).toBeFalsy()
    expect(result.data).toMatchObject({
      status: 'failed',
      exit_code: 3,
      output: 'hello wörld\n',
      artifacts: [{ path: 'out/a b.txt', size: 6 }],
    })
    expect((await call(session, 'read_artifact', { job_id: id, path: 'out/a b.txt' })).data).toMatchObject({
      size: 6,
      text: 'result',
    })
  })

  it('needs one call for a small job', async () => {
    await using session = await open()
    const stop = session.deputy.onChange(({ jobId }) => {
      stop()
      session.deputy.print(jobId, 'out\n')
      session.deputy.print(jobId, 'err\n', 'stderr')
      session.deputy.finish(jobId, { status: 'success', exitCode: 0 })
    })
    const { data } = await call(session, 'submit_job', {
      manifest: 'echo out; echo err >&2',
      wait_seconds: 30,
    })
    expect(data).toMatchObject({ status: 'success', exit_code: 0, output: 'out\nerr\n' })
    const id = String(data.job_id)
    const short = await call(session, 'stream_job_output', { job_id: id.slice(-8), stream: 'stderr' })
    expect(short.data).toMatchObject({ job_id: id, text: 'err\n' })
  })

  it('reads an artifact in pages that end with whole lines', async () => {
    await using session = await open()
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make' } })
    const id = String(data.job_id)
    session.deputy.finish(id, {
      status: 'success',
      artifacts: { 'a.txt': 'one\ntwo\nthree\n', b: '\u0000\uD800' },
    })
    const first = await call(session, 'read_artifact', { job_id: id, path: 'a.txt', max_bytes: 6 })
    expect(first.data).toMatchObject({ text: 'one\n', next_offset: 4 })
    const rest = await call(session, 'read_artifact', { job_id: id, path: 'a.txt', offset: 4 })
    expect(rest.data).toMatchObject({ text: 'two\nthree\n' })
    expect(rest.data).not.toHaveProperty('next_offset')
    const behind = await call(session, 'read_artifact', { job_id: id, path: 'a.txt', offset: 99 })
    expect(behind.text).toContain('Offset 99 is past the end of a.txt (14 bytes)')
  })

  it('says that a job is cancelled only when it is', async () => {
    await using session = await open()
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make' } })
    session.deputy.start(String(data.job_id))
    const cancelled = await call(session, 'cancel_job', { job_id: data.job_id })
    expect(cancelled.data).toMatchObject({ cancelled: cancelled.data.status === 'cancelled' })
  })

  it('answers a call that leaves out its arguments', async () => {
    await using session = await open()
    expect((await call(session, 'list_jobs')).data).toEqual({ jobs: [] })
  })

  it('tells what is wrong with a call and what to do next', async () => {
    await using session = await open()
    const misspelt = await call(session, 'submit_job', { manifest: { tasks: 'make' } })
    expect(misspelt.isError).toBe(true)
    expect(misspelt.text).toContain("unknown key 'tasks', did you mean 'task'?")
    const unknown = await call(session, 'get_job_status', { job_id: 'nope' })
    expect(unknown).toMatchObject({ isError: true })
    expect(unknown.text).toBe("Invalid job id 'nope'.\nNext: Call list_jobs.")
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make' } })
    const early = await call(session, 'get_job_result', { job_id: data.job_id })
    expect(early).toMatchObject({ isError: true })
    expect(early.text).toContain('its status is pending')
    expect(early.text).toContain('get_job_result with wait_seconds: 50')
    expect(early.text).not.toMatch(/\n {4}at /)
  })

  it('waits for the end of a job and reports progress meanwhile', async () => {
    await using session = await open()
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make' } })
    const id = String(data.job_id)
    const reports: string[] = []
    const waiting = session.client.callTool(
      { name: 'get_job_status', arguments: { job_id: id, wait_seconds: 30 } },
      { onprogress: ({ message }) => void reports.push(message ?? '') },
    )
    await until(() => reports.length > 0, 'the first progress report')
    session.deputy.start(id, 'compiling')
    await until(() => reports.some(report => report.includes('compiling')), 'a report of the progress')
    session.deputy.finish(id, { status: 'success' })
    expect((await waiting).structuredContent).toMatchObject({ status: 'success', exit_code: 0 })
  })

  it('goes on with a job whose waiting caller gave up', async () => {
    await using session = await open()
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make' } })
    const id = String(data.job_id)
    session.deputy.start(id)
    const gaveUp = new AbortController()
    const waiting = session.client.callTool(
      { name: 'get_job_status', arguments: { job_id: id, wait_seconds: 30 } },
      { signal: gaveUp.signal },
    )
    gaveUp.abort('enough')
    await expect(waiting).rejects.toThrow()
    expect((await call(session, 'get_job_status', { job_id: id })).data.status).toBe('running')
  })

  it('serves jobs, logs and artifacts as resources', async () => {
    await using session = await open()
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make all' } })
    const id = String(data.job_id)
    session.deputy.start(id)
    session.deputy.print(id, 'line\n')
    session.deputy.finish(id, {
      status: 'success',
      artifacts: { 'a/b.json': '{}', 'bin.dat': Buffer.from([0xff, 0]) },
    })
    const { resources } = await session.client.listResources()
    expect(resources).toMatchObject([{ uri: `job://${id}`, name: 'success: make all' }])
    const read = async (uri: string) => (await session.client.readResource({ uri })).contents[0]
    expect(await read(`job://${id}`)).toMatchObject({ text: expect.stringContaining('"status":"success"') })
    expect(await read(`job://${id}/log`)).toMatchObject({ text: 'line\n', mimeType: 'text/plain' })
    expect(await read(`job://${id}/artifacts/a/b.json`)).toMatchObject({
      text: '{}',
      mimeType: 'application/json',
    })
    expect(await read(`job://${id}/artifacts/bin.dat`)).toMatchObject({ blob: '/wA=' })
    const { resourceTemplates } = await session.client.listResourceTemplates()
    expect(resourceTemplates.map(template => template.uriTemplate)).toEqual([
      'job://{id}',
      'job://{id}/log',
      'job://{id}/artifacts/{+path}',
    ])
  })

  it.each([
    'job://nope',
    'job://nope/log',
    'job://nope/artifacts/x',
    'job://nope/artifacts/%ff',
    'other://x',
  ])('says that %s is not there', async uri => {
    await using session = await open()
    await expect(session.client.readResource({ uri })).rejects.toMatchObject({ code: -32602 })
  })

  it('completes ids of jobs and paths of artifacts', async () => {
    await using session = await open()
    const { data } = await call(session, 'submit_job', { manifest: { task: 'make' } })
    const id = String(data.job_id)
    session.deputy.finish(id, { status: 'success', artifacts: { 'a.txt': '', 'b.txt': '' } })
    const ids = await session.client.complete({
      ref: { type: 'ref/resource', uri: 'job://{id}/log' },
      argument: { name: 'id', value: id.slice(0, 4) },
    })
    expect(ids.completion.values).toEqual([id])
    const paths = await session.client.complete({
      ref: { type: 'ref/resource', uri: 'job://{id}/artifacts/{+path}' },
      argument: { name: 'path', value: 'b' },
      context: { arguments: { id } },
    })
    expect(paths.completion.values).toEqual(['b.txt'])
  })

  it('tells of changes of the resources a client asked about, and of no others', async () => {
    await using session = await open()
    const [first, second] = await Promise.all(
      ['a', 'b'].map(async task => (await session.deputy.submit({ task }, 'test')).job_id),
    )
    const told: string[] = []
    session.client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      told.push(params.uri)
    })
    const uris = [`job://${first}`, `job://${first}/log`]
    if (way.era === 'modern') await session.client.listen({ resourceSubscriptions: uris })
    else for (const uri of uris) await session.client.subscribeResource({ uri })
    session.deputy.start(second!)
    session.deputy.start(first!)
    session.deputy.print(first!, 'x')
    await until(() => told.length >= 2, 'two updates')
    expect(new Set(told)).toEqual(new Set(uris))
  })

  it('tells that the list of jobs changed', async () => {
    await using session = await open()
    let told = 0
    session.client.setNotificationHandler('notifications/resources/list_changed', () => {
      told += 1
    })
    if (way.era === 'modern') await session.client.listen({ resourcesListChanged: true })
    await session.deputy.submit({ task: 'a' }, 'test')
    await until(() => told > 0, 'the notification')
  })

  it('walks an agent through delegating', async () => {
    await using session = await open()
    const { messages } = await session.client.getPrompt({ name: 'delegate', arguments: { task: 'build it' } })
    expect(messages[0]?.content).toMatchObject({ type: 'text', text: expect.stringContaining('build it') })
  })

  it('serves nothing that changes something when read-only', async () => {
    await using session = await open({ selection: { readOnly: true } })
    const names = (await session.client.listTools()).tools.map(tool => tool.name)
    expect(names).toEqual([
      'get_job_status',
      'get_job_result',
      'stream_job_output',
      'read_artifact',
      'get_patch',
      'list_jobs',
    ])
    await expect(
      session.client.callTool({ name: 'submit_job', arguments: { manifest: { task: 'x' } } }),
    ).rejects.toThrow(/not found/)
    expect((await session.deputy.list({})).jobs).toEqual([])
  })

  it('starts although a toolset it was given does not exist, and says so', async () => {
    await using session = await open({ selection: { toolsets: ['job'] } })
    expect(session.client.getInstructions()).toContain("No toolset 'job', did you mean 'jobs'?")
  })

  it('lists at most 6 KB for twenty jobs, however long their tasks and labels are', async () => {
    await using session = await open()
    for (let i = 0; i < 25; i++)
      await session.deputy.submit(
        { task: '字"\n\u0001'.repeat(300), labels: { team: 'x'.repeat(200), step: `${i}` } },
        'test',
      )
    const page = await call(session, 'list_jobs')
    expect(page.data.jobs).toHaveLength(20)
    expect(Buffer.byteLength(page.text)).toBeLessThan(6144)
    const rest = await call(session, 'list_jobs', { cursor: page.data.next_cursor })
    expect(rest.data.jobs).toHaveLength(5)
    expect(rest.data.next_cursor).toBeUndefined()
  })
})

it.each(['modern', 'legacy'] as const)(
  'a %s session loads a toolset when the model asks for it',
  async era => {
    const extra = { ...jobsToolset, name: 'extra', byDefault: false, tools: [SAY] }
    let changes = 0
    await using session = await connect({ wire: 'stdio', era, more: [extra] })
    session.client.setNotificationHandler('notifications/tools/list_changed', () => {
      changes++
    })
    if (era === 'modern') await session.client.listen({ toolsListChanged: true })
    const names = async (): Promise<string[]> => {
      const { tools } = await session.client.listTools(undefined, { cacheMode: 'refresh' })
      return tools.map(({ name }) => name)
    }
    expect(await names()).toContain('use_toolset')
    expect(await names()).not.toContain('say')
    expect((await call(session, 'use_toolset', { toolset: 'extra' })).data).toMatchObject({ tools: ['say'] })
    await until(() => changes > 0, 'the notification')
    expect(await names()).toContain('say')
    expect((await call(session, 'say')).data).toEqual({ said: true })
  },
)
