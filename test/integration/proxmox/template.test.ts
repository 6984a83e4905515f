import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestCli, until } from '../../support/cli.ts'
import { type Cluster, startCluster } from '../../support/pve.ts'

let cluster: Cluster
beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(() => cluster.close())

it('a template that is not wanted any more is removed at Ctrl-C', async () => {
  const { emulator, root } = cluster
  const image = { content: 'import', filename: 'debian.qcow2', file: Buffer.from('disk') } as const
  await root().upload({ node: 'pve1', storage: 'local', ...image })
  const cli = createTestCli({
    ...emulator.env(),
    PROXMOX_USER: 'root@pam',
    PROXMOX_PASSWORD: emulator.standard.rootPassword,
  })
  const { vms, volumes } = emulator.state
  try {
    const flags = ['--image', 'local:import/debian.qcow2', '--node', 'pve1', '--template', '9100']
    const { child, finished } = cli.start(['proxmox', 'template', ...flags, '--seeds', 'seeds'])
    await until(() => vms.get(9100)?.status === 'running', 'the first boot')
    child.kill('SIGINT')
    const { code, stdout, stderr } = await finished
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' })
    expect(stderr).toMatch(
      /^importing local:import\/debian.qcow2\nbooting VM 9100 once.*\nremoving the unfinished VM/,
    )
    expect(vms.has(9100)).toBe(false)
    expect([...volumes.keys()].filter(name => name.includes('9100'))).toEqual([])
  } finally {
    await cli.close()
  }
})
