import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLI, newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { findTools, need, runTool } from '../../support/e2e-tools.ts'
import { bridgeEnv } from '../../support/mcp/bridge.ts'

const { tools, reason } = findTools()

describe.skipIf(!tools)(`the inspector${reason ? ` (${reason})` : ''}`, () => {
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

  const inspect = async (era: string, toolsets: string, ...args: string[]) => {
    const server = [
      process.execPath,
      CLI,
      'mcp',
      '-e',
      `DEPUTY_HOME=${directory}`,
      '-e',
      `DEPUTY_TOOLSETS=${toolsets}`,
    ]
    const { status, stdout, stderr } = await runTool(
      tools!.node,
      [tools!.inspector, '--cli', ...server, '--format', 'json', '-q', '--protocol-era', era, ...args],
      { env: bridgeEnv(directory) },
    )
    expect(stderr).toBe('')
    expect(status).toBe(0)
    return JSON.parse(stdout).result
  }

  it.each(['modern', 'legacy'])('finds nothing to complain about in any tool (%s)', async era => {
    const { tools: listed } = await inspect(era, 'all', '--method', 'tools/list', '--strict')
    expect(listed.map((tool: { name: string }) => tool.name)).toContain('submit_job')
  })

  it('follows a submitted job as a task to its result', async ({ skip }) => {
    need(skip, ready, 'no runtime is ready on this machine')
    const manifest = { task: 'sleep 1; echo followed' }
    const args = [
      '--method',
      'tools/call',
      '--tool-name',
      'submit_job',
      '--tool-args-json',
      JSON.stringify({ manifest }),
    ]
    expect((await inspect('modern', 'jobs', ...args)).structuredContent).toMatchObject({
      status: 'success',
      output: 'followed\n',
    })
    // Older revisions have no such tasks: a handle comes back at once.
    expect((await inspect('legacy', 'jobs', ...args)).structuredContent).toHaveProperty('next')
  })
})
