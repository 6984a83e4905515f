import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { newVm, type Vm } from '../../../src/dev/pve/state.ts'
import { createCertificate } from '../../../src/guest/certificate.ts'
import { type Lab, type LabOptions, openLab } from '../../support/proxmox-runtime.ts'
import { requireOrSkip } from '../../support/require.ts'

const noCurl = requireOrSkip(spawnSync('curl', ['--version']).error && 'there is no curl')

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const ID = '018f0000-0000-7000-8000-0000000000c1'

/** One machine from a template that was changed before, and what was remembered of it. */
const make = async (change: (template: Vm, lab: Lab) => void, options: LabOptions = {}) => {
  const lab = await openLab(options)
  change(lab.emulator.state.vms.get(9000)!, lab)
  const runtime = lab.makeRuntime()
  closers.push(runtime.close, lab.close)
  let details: Readonly<Record<string, unknown>> = {}
  await runtime.provision({
    machine: { id: ID, runtime: 'proxmox', jobId: null, details: {} },
    remember: async told => {
      details = told
    },
    signal: AbortSignal.timeout(40_000),
  })
  return { lab, runtime, details, vm: lab.machines()[0]! }
}

describe.skipIf(noCurl)('a clone', () => {
  it('is filtered, sized and unprotected whatever the template was', async () => {
    let mac = ''
    const { vm } = await make(template => {
      mac = /virtio=([^,]+)/.exec(template.config.net0!)![1]!
      Object.assign(template.config, {
        net0: `virtio=${mac},bridge=vmbr0,mtu=1400`,
        sockets: '2',
        vcpus: '2',
        balloon: '4096',
        protection: '1',
      })
    })
    expect(vm.config).toMatchObject({
      sockets: '1',
      cores: '1',
      memory: '512',
      balloon: '0',
      protection: '0',
    })
    expect(vm.config.vcpus).toBeUndefined()
    expect(vm.config.net0).toMatch(/^virtio=[^,]+,bridge=vmbr0,mtu=1400,firewall=1$/)
    expect(vm.config.net0).not.toContain(mac)
  })

  it('has the VLAN and the rate of the settings without a bridge of theirs', async () => {
    const network = { firewall: true, privateAddresses: false, tag: 42, rate: 5 }
    const { vm } = await make(() => {}, { runtime: { network } })
    expect(vm.config.net0).toContain(',bridge=vmbr0,firewall=1,tag=42,rate=5')
  })

  it.each(['iso', 'http'] as const)('keeps no cloud-init drive beside our %s seed', async injection => {
    const { vm } = await make(
      template => {
        Object.assign(template.config, {
          ide0: 'shared:vm-9000-cloudinit,media=cdrom',
          ide2: 'none,media=cdrom',
          sata0: 'shared:9000/vm-9000-cloudinit.qcow2,media=cdrom',
        })
      },
      { runtime: { injection } },
    )
    expect(JSON.stringify(vm.config)).not.toContain('cloudinit')
  })

  it('reports over HTTPS to a name without being allowed to ask for names', async () => {
    const callback = { host: 'localhost', port: 0, tls: createCertificate({ commonName: 'deputy' }) }
    const { vm, details } = await make(() => {}, { runtime: { callback } })
    expect(details).toMatchObject({ ready: true })
    expect(vm.firewall.rules).toHaveLength(1)
    expect(vm.firewall.rules[0]!.dport).not.toBe('53')
  })

  it('is made where Proxmox VE makes one: beside an image in a CD-ROM drive of the template', async () => {
    const { vm } = await make((template, { emulator: { state } }) => {
      const image = {
        content: 'iso',
        size: 1,
        ctime: 0,
        node: 'pve1',
        storage: 'seeds',
        volid: 'seeds:iso/d.iso',
      }
      state.volumes.set('pve1|seeds:iso/d.iso', image)
      Object.assign(template.config, { ide0: 'seeds:iso/d.iso,media=cdrom', ide2: 'none,media=cdrom' })
      const busy = newVm(100_900, 'pve1', { name: 'busy', memory: '4096', template: '1' })
      state.vms.set(100_900, Object.assign(busy, { pool: 'jobs', status: 'running' }))
      state.statCache.at = 0
    })
    expect(vm.node).toBe('pve1')
  })

  it('grows the disk it boots from, not another one', async () => {
    const { vm } = await make(
      (template, lab) => {
        const { state } = lab.emulator
        const volid = 'shared:base-9000-disk-1'
        state.volumes.set(volid, { ...state.volumes.get('shared:base-9000-disk-0')!, volid })
        template.config = { scsi1: `${volid},size=8G`, ...template.config }
      },
      { runtime: { defaults: { cpu: 1, memory: 2 ** 29, disk: 12 * 2 ** 30 } } },
    )
    expect(vm.config.scsi0).toContain('size=12G')
    expect(vm.config.scsi1).toContain('size=8G')
  })
})
