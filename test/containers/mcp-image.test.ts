import { realpathSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, it } from 'vitest'
import { BUSYBOX, createEngine, importBusybox, missingForEngine } from '../support/containers/engines.ts'
import { CLI, newHome, removeDirectory } from '../support/daemon.ts'
import { bridgeEnv, stopDaemonOf } from '../support/mcp/bridge.ts'

const submitAndWait = async (client: Client, manifest: Record<string, unknown>) => {
  const call = async (name: string, args: Record<string, unknown>) =>
    (await client.callTool({ name, arguments: args })).structuredContent as Record<string, unknown>
  let answer = await call('submit_job', { manifest, wait_seconds: 50 })
  // A result has an exit code, or the error of a job that has none.
  for (let turn = 0; turn < 3 && !('exit_code' in answer || 'error' in answer); turn++)
    answer = await call('get_job_result', { job_id: answer.job_id, wait_seconds: 50 })
  return answer
}

it.for(['docker', 'podman'] as const)(
  'an MCP client runs a job in an image on %s, or is told why it cannot',
  { timeout: 300_000 },
  async (name, { skip }) => {
    const missing = missingForEngine(name)
    skip(missing !== undefined, missing)
    const engine = await createEngine(name)
    const directory = realpathSync(newHome())
    const client = new Client({ name: 'test', version: '1' })
    try {
      await importBusybox(engine)
      await client.connect(
        new StdioClientTransport({
          command: process.execPath,
          args: [CLI, 'mcp'],
          env: bridgeEnv(directory, { DOCKER_HOST: engine.host }) as Record<string, string>,
          stderr: 'ignore',
        }),
      )
      const result = await submitAndWait(client, {
        task: 'cat /workspace/in.txt; echo made >/workspace/out.txt; ls /bin/busybox; exit 3',
        image: BUSYBOX,
        files: [{ path: '/workspace/in.txt', text: 'given\n' }],
        artifacts: ['out.txt'],
      })
      expect(result).toMatchObject({
        exit_code: 3,
        runtime: 'container',
        output: 'given\n/bin/busybox\n',
      })
      expect(JSON.stringify(result.artifacts)).toContain('out.txt')
      const unknown = { task: 'true', image: 'localhost/deputy-test/none:1', pull: 'never', retries: 0 }
      expect(JSON.stringify(await submitAndWait(client, unknown))).toContain(
        "does not have the image 'localhost/deputy-test/none:1'",
      )
    } finally {
      await client.close()
      await stopDaemonOf(directory)
      removeDirectory(directory)
      await engine.close()
    }
  },
)
