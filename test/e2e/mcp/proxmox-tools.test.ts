import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLI, newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { findTools, runTool } from '../../support/e2e-tools.ts'
import { type Cluster, startCluster } from '../../support/pve.ts'

const { tools, reason } = findTools()

describe.skipIf(!tools)(`the Proxmox tools in the inspector${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let cluster: Cluster
  let directory: string
  let daemon: TestDaemon

  beforeAll(async () => {
    cluster = await startCluster()
    directory = newHome()
    daemon = await startDaemon({ directory, env: cluster.emulator.env() })
  })
  afterAll(async () => {
    await daemon.kill('SIGTERM')
    await cluster.close()
    removeDirectory(directory)
  })

  const inspect = (era: string, ...method: string[]) =>
    runTool(tools!.node, [
      tools!.inspector,
      '--cli',
      process.execPath,
      CLI,
      'mcp',
      '--toolsets',
      'default,proxmox-all,proxmox-admin',
      '-e',
      `DEPUTY_HOME=${directory}`,
      '--format',
      'json',
      '-q',
      '--protocol-era',
      era,
      ...method,
    ])

  it.each(['modern', 'legacy'])('have schemas every client can map (%s)', async era => {
    const { status, stdout, stderr } = await inspect(era, '--method', 'tools/list', '--strict')
    expect(stderr).not.toContain('Warning')
    expect(status).toBe(0)
    expect(stdout).toContain('proxmox_guest_snapshot')
  })

  it.each(['modern', 'legacy'])('answer (%s)', async era => {
    const { status, stdout } = await inspect(
      era,
      '--method',
      'tools/call',
      '--tool-name',
      'list_nodes',
      '--tool-args-json',
      '{}',
    )
    expect(status).toBe(0)
    expect(stdout).toContain('pve1')
  })
})
