import { afterEach, describe, expect, it } from 'vitest'
import { withoutToken } from '../../src/proxmox/credentials.ts'
import { createProxmox, type Proxmox } from '../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../src/proxmox/proxmox-settings.ts'
import { createTestCli } from '../support/cli.ts'
import type { Lab } from '../support/proxmox-provider.ts'
import { realMachines } from '../support/real-machines.ts'
import { requireOrSkip } from '../support/require.ts'
import { consoleTail, findImage } from '../support/vm.ts'

const { image, cloudImage, missing } = findImage()
const TEMPLATE = 9100
const NODE = 'pve1'

describe.skipIf(requireOrSkip(missing))('a template of a cloud image', () => {
  const lab = realMachines(image!)
  afterEach(lab.close)

  it('is completed at its first boot, and its clones run jobs', async () => {
    const deputy = await lab.openDeputy({ injection: 'iso', template: String(TEMPLATE) })
    const { cluster, directory, engine } = deputy
    const env = administrator(cluster)
    const cli = createTestCli(env)
    lab.onClose(cli.close)
    const proxmox = createProxmox(parseSettings(withoutToken(env)))
    lab.onClose(() => proxmox.close())
    await bringImage(proxmox, cloudImage!)

    const where = ['--template', String(TEMPLATE), '--disks', 'local-lvm', '--seeds', 'seeds']
    const image = ['--image', 'local:import/cloud.qcow2', '--node', NODE, '--name', 'made']
    const made = await cli.run(['proxmox', 'template', ...image, ...where])
    const said = consoleTail(directory, TEMPLATE)
    expect(made, said).toMatchObject({ code: 0, stdout: `template ${TEMPLATE} (made) is ready on ${NODE}\n` })
    expect(said).toContain('Setting up qemu-guest-agent')
    const config = await proxmox.get<Record<string, unknown>>(`/nodes/${NODE}/qemu/${TEMPLATE}/config`)
    expect(config).toMatchObject({
      template: 1,
      boot: 'order=scsi0',
      scsi0: `local-lvm:base-${TEMPLATE}-disk-0,size=2G`,
    })
    expect(config).not.toHaveProperty('ide2')
    expect(cluster.seeds()).toEqual([])

    const token = ['--user', cluster.emulator.standard.user, '--token', cluster.emulator.standard.tokenName]
    expect(await cli.run(['proxmox', 'setup', '--apply', ...token, ...where])).toMatchObject({ code: 0 })
    const script = `
      cat /var/lib/cloud/instance/datasource
      ls /var/lib/cloud/instances | wc -l
      ls /etc/systemd/network
      wc -c </etc/machine-id`
    const { result, told } = await lab.run(deputy, {
      task: 'are you a machine of your own',
      agentType: 'custom',
      agent: { command: ['/bin/sh', '-c', script] },
      lifecycle: 'persistent',
      timeout: 200,
    })
    expect(result.status, told()).toBe('success')
    expect(result.output.split('\n')).toEqual([
      'DataSourceNoCloud: DataSourceNoCloud [seed=/dev/sr0]',
      '1',
      '10-cloud-init-eth0.network',
      '33',
      '',
    ])
    const { vmid, node } = cluster.machines()[0]!
    await proxmox.post(`/nodes/${node}/qemu/${vmid}/agent/ping`)
    await engine.deputy.destroyMachine(result.machine_id!)
    await lab.expectNothingLeft(deputy)
  })
})

/** What a person who may prepare the cluster sets. */
const administrator = ({ emulator }: Lab) => ({
  ...emulator.env(),
  PROXMOX_USER: 'root@pam',
  PROXMOX_PASSWORD: emulator.standard.rootPassword,
  PROXMOX_POOL: 'jobs',
})

const bringImage = async (proxmox: Proxmox, file: string): Promise<void> => {
  const image = { content: 'import', filename: 'cloud.qcow2', file: { path: file } } as const
  await proxmox.upload({ node: NODE, storage: 'local', ...image })
}
