import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callsOf, lastToolResult, type MessagesRequest, startAnthropic } from '../../support/anthropic.ts'
import { CLI, newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { findTools, need, runTool } from '../../support/e2e-tools.ts'
import { bridgeEnv } from '../../support/mcp/bridge.ts'

const { tools, reason } = findTools()

describe.skipIf(!tools)(`the Claude CLI${reason ? ` (${reason})` : ''}`, () => {
  let directory: string
  let daemon: TestDaemon
  let ready: boolean

  beforeAll(async () => {
    directory = newHome()
    daemon = await startDaemon({ directory })
    ready = (await daemon.client.doctor(AbortSignal.timeout(30_000))).some(runtime => runtime.ready)
  })

  afterAll(async () => {
    await daemon.kill('SIGTERM')
    removeDirectory(directory)
  })

  const claude = (args: string[], env: Record<string, string> = {}) =>
    runTool(tools!.claude, args, {
      cwd: directory,
      env: bridgeEnv(directory, {
        ANTHROPIC_API_KEY: 'not-a-key',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
        ...env,
      }),
      timeoutMs: 120_000,
    })

  it('shows the server as connected', async () => {
    const added = await claude(['mcp', 'add', 'deputy', '--', process.execPath, CLI, 'mcp'])
    expect(added.stdout + added.stderr).toContain('deputy')
    const { stdout } = await claude(['mcp', 'list'])
    expect(stdout).toMatch(/deputy: .*✔ Connected/)
  })

  it('submits a job and reads its result in a scripted conversation', async ({ skip }) => {
    need(skip, ready, 'no runtime is ready on this machine')
    await using api = await startAnthropic(script)
    const config = join(directory, 'mcp.json')
    writeFileSync(
      config,
      JSON.stringify({ mcpServers: { deputy: { command: process.execPath, args: [CLI, 'mcp'] } } }),
    )
    const { stdout, stderr } = await claude(
      [
        '-p',
        'Delegate it.',
        '--mcp-config',
        config,
        '--strict-mcp-config',
        '--allowedTools',
        'mcp__deputy',
        '--output-format',
        'json',
      ],
      { ANTHROPIC_BASE_URL: api.url },
    )
    expect(JSON.parse(stdout || `{"stderr":${JSON.stringify(stderr)}}`)).toMatchObject({
      is_error: false,
      result: 'The job printed: it worked',
    })
    const { jobs } = await daemon.client.list({})
    expect(jobs).toHaveLength(1)
    expect(await daemon.client.get(jobs[0]!.job_id)).toMatchObject({
      origin: 'mcp:claude-code',
      status: 'success',
    })
  })
})

const tool = (name: string) => `mcp__deputy__${name}`
const use = (name: string, input: unknown) => [{ type: 'tool_use' as const, name, input }]

/** What a model would do that wants a job done and reads the answers. */
const script = (request: MessagesRequest) => {
  const names = request.tools?.map(({ name }) => name) ?? []
  // A side request of the CLI, such as for a title.
  if (names.length === 0) return [{ type: 'text' as const, text: 'ok' }]
  if (
    !names.includes(tool('submit_job')) &&
    names.includes('ToolSearch') &&
    callsOf(request, 'ToolSearch') === 0
  )
    return use('ToolSearch', {
      query: `select:${['submit_job', 'get_job_status', 'get_job_result'].map(tool).join(',')}`,
    })
  const answer = lastToolResult(request) ?? ''
  const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(answer)?.[0]
  if (callsOf(request, tool('submit_job')) === 0)
    return use(tool('submit_job'), { manifest: { task: 'echo it worked' } })
  if (callsOf(request, tool('get_job_status')) === 0)
    return use(tool('get_job_status'), { job_id: id, wait_seconds: 50 })
  if (callsOf(request, tool('get_job_result')) === 0) return use(tool('get_job_result'), { job_id: id })
  const output = /\\?"output\\?":\\?"(.*?)\\+n\\?"/.exec(answer)?.[1] ?? `nothing I understand: ${answer}`
  return [{ type: 'text' as const, text: `The job printed: ${output}` }]
}
