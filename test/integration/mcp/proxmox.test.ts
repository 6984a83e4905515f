import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestCli } from '../../support/cli.ts'
import { CLI, newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { bridgeEnv } from '../../support/mcp/bridge.ts'
import { estimateTokens } from '../../support/mcp/tokens.ts'
import { type Cluster, startCluster } from '../../support/pve.ts'

const open = async (directory: string, args: string[] = []) => {
  const client = new Client({ name: 'stdio-test', version: '1' })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [CLI, 'mcp', ...args],
      env: bridgeEnv(directory) as Record<string, string>,
      stderr: 'ignore',
    }),
  )
  return { client, [Symbol.asyncDispose]: () => client.close() }
}

describe('a daemon with a cluster', () => {
  let cluster: Cluster
  let directory: string
  let daemon: TestDaemon

  beforeAll(async () => {
    cluster = await startCluster()
    directory = newHome()
    const root = {
      PROXMOX_USER: 'root@pam',
      PROXMOX_TOKEN_NAME: '',
      PROXMOX_TOKEN_VALUE: '',
      PROXMOX_PASSWORD: cluster.emulator.standard.rootPassword,
    }
    daemon = await startDaemon({
      directory,
      env: {
        ...cluster.emulator.env(),
        ...root,
        PROXMOX_ALLOW_ELEVATED: 'true',
        DEPUTY_ALLOW_HOST: 'true',
        CLUSTER_WORKER_HOST: '127.0.0.9',
      },
    })
  })
  afterAll(async () => {
    await daemon.kill('SIGTERM')
    await cluster.close()
    removeDirectory(directory)
  })

  it('serves five tools more by default, and toolsets by name', async () => {
    await using plain = await open(directory)
    const names = (await plain.client.listTools()).tools.map(tool => tool.name)
    expect(names).toEqual(
      expect.arrayContaining([
        'submit_job',
        'list_nodes',
        'get_cluster_resources',
        'proxmox_api_search',
        'proxmox_api_describe',
        'proxmox_api_call',
      ]),
    )
    expect(names.filter(name => name.startsWith('proxmox_'))).toHaveLength(3)
    await using more = await open(directory, ['--toolsets', 'proxmox-all'])
    expect((await more.client.listTools()).tools.length).toBeGreaterThanOrEqual(92)
  })

  it('lists tools that cost a model less than 3,000 tokens with a Proxmox cluster and nodes', async () => {
    await using session = await open(directory)
    const { tools } = await session.client.listTools()
    const names = tools.map(tool => tool.name)
    for (const name of ['submit_job', 'cluster_bash', 'proxmox_api_call', 'use_toolset'])
      expect(names).toContain(name)
    expect(estimateTokens(JSON.stringify(tools))).toBeLessThan(3000)
  })

  it('clones a guest for a client that is only a bridge, and writes it down', async () => {
    await using session = await open(directory, ['--toolsets', 'default,proxmox-guests'])
    const result = await session.client.callTool({
      name: 'proxmox_guest_clone',
      arguments: { vmid: 9000, newid: 400, name: 'via-bridge' },
    })
    expect(result.structuredContent).toMatchObject({ state: 'ok' })
    expect(cluster.emulator.state.vms.get(400)?.config.name).toBe('via-bridge')
    const audit = readFileSync(join(directory, 'state/proxmox/audit.jsonl'), 'utf8')
    expect(audit).toContain('"who":"mcp:stdio-test"')
    expect(audit).toContain('/nodes/pve1/qemu/9000/clone')
  })

  it('shows the nodes and guests of the cluster to the console, with the read-only token, too', async () => {
    const { url } = await daemon.client.daemon()
    const answer = await fetch(`${url}/api/proxmox`, {
      headers: {
        authorization: `Bearer ${readFileSync(join(directory, 'state/token-readonly'), 'utf8').trim()}`,
      },
    })
    expect(await answer.json()).toMatchObject({
      configured: true,
      nodes: expect.arrayContaining([
        expect.objectContaining({ name: 'pve1', online: true, memory_limit: expect.any(Number) }),
      ]),
      guests: expect.arrayContaining([
        expect.objectContaining({ vmid: 9000, kind: 'qemu', node: 'pve1', template: true }),
      ]),
    })
  })

  it('destroys a guest only when the user has approved it on a terminal', async () => {
    await using session = await open(directory, ['--toolsets', 'proxmox-guests'])
    const cli = createTestCli({ DEPUTY_HOME: directory })
    const destroy = async () => {
      const { structuredContent } = await session.client.callTool({
        name: 'proxmox_guest_delete',
        arguments: { vmid: 9001 },
      })
      return structuredContent as Record<string, unknown>
    }
    const id = String((await destroy()).plan_id)
    const { url } = await daemon.client.daemon()
    const overTcp = await fetch(`${url}/api/proxmox/approvals/${id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${readFileSync(join(directory, 'state/token'), 'utf8').trim()}` },
    })
    expect(overTcp.status).toBe(403)
    const piped = await cli.run(['proxmox', 'approve', id], { input: 'y\n' })
    expect(piped).toMatchObject({ code: 2, stderr: expect.stringContaining('on a terminal') })
    expect((await cli.tty(['proxmox', 'approve', id], {}, 'n\n')).stdout).toContain('Not approved')
    expect(await destroy()).toMatchObject({ status: 'needs_confirmation', plan_id: id })
    expect((await cli.run(['proxmox', 'approve'])).stdout).toContain('DELETE /nodes/pve1/qemu/9001')

    const { stdout } = await cli.tty(['proxmox', 'approve', id], {}, 'y\n')
    expect(stdout).toContain('mcp:stdio-test wants to: DELETE /nodes/pve1/qemu/9001')
    expect(stdout).toContain('Approved until')
    expect(await destroy()).toMatchObject({ state: 'ok' })
    expect(cluster.emulator.state.vms.has(9001)).toBe(false)
  })

  it('takes no approval while a job has the rights of the user', async () => {
    await using session = await open(directory, ['--toolsets', 'proxmox-guests'])
    const { structuredContent } = await session.client.callTool({
      name: 'proxmox_guest_delete',
      arguments: { vmid: 9000 },
    })
    const { plan_id } = structuredContent as { plan_id: string }
    const job = await daemon.client.submit({ task: 'sleep 600', runtime: 'host' })
    await expect(daemon.client.approve(plan_id)).rejects.toMatchObject({
      code: 'conflict',
      message: `The job ${job.job_id} runs on this computer without isolation.`,
    })
    await daemon.client.cancel(job.job_id)
    await daemon.client.wait(job.job_id, { timeoutMs: 30_000, signal: new AbortController().signal })
    expect(await daemon.client.approve(plan_id)).toMatchObject({ approved: true })
  })
})

describe('a daemon with wrong settings of a cluster', () => {
  it('still serves jobs, and tells every client what is wrong', async () => {
    const directory = newHome()
    const daemon = await startDaemon({ directory, env: { PROXMOX_HOST: 'pve1.invalid' } })
    try {
      await using session = await open(directory)
      expect((await session.client.listTools()).tools.map(tool => tool.name)).toContain('submit_job')
      expect(session.client.getInstructions()).toContain(
        'The Proxmox tools are off: No Proxmox VE credentials are set.',
      )
    } finally {
      await daemon.kill('SIGTERM')
      removeDirectory(directory)
    }
  })
})
