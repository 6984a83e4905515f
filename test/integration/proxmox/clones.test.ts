import { describe, expect, it, onTestFinished } from 'vitest'
import { createCertificate } from '../../../src/guest/certificate.ts'
import { useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import type { Lab, LabOptions } from '../../support/proxmox-provider.ts'
import type { GuestAgent, GuestDriver } from '../../support/pve/guests/driver.ts'
import { fastGuests } from '../../support/pve/guests/fast.ts'
import { newVm, type Vm } from '../../support/pve/state.ts'
import { requireOrSkip } from '../../support/require.ts'

const noCurl = requireOrSkip(hasCurl ? undefined : 'there is no curl')

const ID = '018f0000-0000-7000-8000-0000000000c1'

/** One machine from a template that was changed before, and what was remembered of it. */
const make = async (change: (template: Vm, lab: Lab) => void, options: LabOptions = {}) => {
  const lab = await useLab(options)
  change(lab.emulator.state.vms.get(9000)!, lab)
  const provider = lab.makeProvider()
  onTestFinished(() => provider.close())
  let details: Readonly<Record<string, unknown>> = {}
  await provider.create({
    machine: { id: ID, runtime: 'proxmox', jobId: null, details: {} },
    remember: async told => {
      details = told
    },
    signal: AbortSignal.timeout(40_000),
  })
  return { lab, provider, details, vm: lab.machines()[0]! }
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
    const { vm } = await make(() => {}, { provider: { network } })
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
      { provider: { injection } },
    )
    expect(JSON.stringify(vm.config)).not.toContain('cloudinit')
  })

  it('reports over HTTPS to a name without being allowed to ask for names', async () => {
    const callback = { host: 'localhost', port: 0, tls: createCertificate({ commonName: 'deputy' }) }
    const { vm, details } = await make(() => {}, { provider: { callback } })
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

  it('waits for room where the token may see the memory of nodes', async () => {
    const began = performance.now()
    const { vm } = await make((_, { emulator: { state, standard } }) => {
      state.roles.set('DeputyWatch', new Set(['Sys.Audit']))
      for (const who of [standard.user, `${standard.user}!${standard.tokenName}`])
        state.acl.push({ path: '/nodes', who, role: 'DeputyWatch', propagate: true })
      for (const node of state.nodes.values()) node.mem = node.maxmem
      setTimeout(() => {
        state.nodes.get('pve2')!.mem = 0
      }, 300)
    })
    expect(vm.node).toBe('pve2')
    expect(performance.now() - began).toBeGreaterThan(300)
  })

  it('grows the disk it boots from, not another one', async () => {
    const { vm } = await make(
      (template, lab) => {
        const { state } = lab.emulator
        const volid = 'shared:base-9000-disk-1'
        state.volumes.set(volid, { ...state.volumes.get('shared:base-9000-disk-0')!, volid })
        template.config = { scsi1: `${volid},size=8G`, ...template.config }
      },
      { provider: { defaults: { cpu: 1, memory: 2 ** 29, disk: 12 * 2 ** 30 } } },
    )
    expect(vm.config.scsi0).toContain('size=12G')
    expect(vm.config.scsi1).toContain('size=8G')
  })
})

describe.skipIf(noCurl)('a runner that came through the guest agent', () => {
  it('is asked to be a service of its own, and runs without systemd too', async () => {
    const asked: string[] = []
    const fast = fastGuests()
    const guests: GuestDriver = {
      start: async spec => {
        const guest = await fast.start(spec)
        return {
          ...guest,
          agent: () => {
            const agent = guest.agent()
            if (agent === undefined) return undefined
            const exec: GuestAgent['exec'] = (argv, input) => {
              asked.push(argv.join(' '))
              return agent.exec(argv, input)
            }
            return { ...agent, exec }
          },
        }
      },
    }
    const { details } = await make(() => {}, { emulator: { guests }, provider: { injection: 'agent' } })
    expect(details).toMatchObject({ ready: true })
    expect(asked.join('\n')).toMatch(
      /systemd-run .*--unit=deputy-runner.* --property=IgnoreSIGPIPE=no \/bin\/sh \/var\/lib\/deputy\/runner/,
    )
    expect(asked.join('\n')).not.toContain('DEPUTY_ROOT')
  })
})

describe.skipIf(noCurl)('the firewall of the datacenter', () => {
  const watch = (lab: Lab, enable: number) => {
    const { state, standard } = lab.emulator
    state.clusterFirewall.options = { enable }
    state.roles.set('DeputyWatch', new Set(['Sys.Audit']))
    for (const who of [standard.user, `${standard.user}!${standard.tokenName}`])
      state.acl.push({ path: '/', who, role: 'DeputyWatch', propagate: false })
  }

  it.each([
    ['on', (lab: Lab) => watch(lab, 1)],
    ['off', (lab: Lab) => watch(lab, 0)],
    ['unknown', () => {}],
  ] as const)('is remembered of a machine as %s', async (filter, prepare) => {
    const { details } = await make((_, lab) => prepare(lab))
    expect(details).toMatchObject({ filter, network: 'none' })
  })

  it('does not matter where no rules are set', async () => {
    const network = { firewall: false, privateAddresses: false }
    const { details, vm } = await make((_, lab) => watch(lab, 1), { provider: { network } })
    expect(details).toMatchObject({ filter: 'off' })
    expect(vm.firewall.options).toEqual({})
  })
})

describe('doctor', () => {
  const check = async (prepare: (lab: Lab) => void, options: LabOptions = {}) => {
    const lab = await useLab(options)
    prepare(lab)
    const provider = lab.makeProvider()
    onTestFinished(() => provider.close())
    const { checks } = await provider.check(AbortSignal.timeout(30_000))
    return (name: string) => checks.find(one => one.name === name)
  }
  const grant = (lab: Lab, path: string, propagate: boolean) => {
    const { state, standard } = lab.emulator
    state.roles.set('DeputyWatch', new Set(['Sys.Audit']))
    for (const who of [standard.user, `${standard.user}!${standard.tokenName}`])
      state.acl.push({ path, who, role: 'DeputyWatch', propagate })
  }

  it('tells whether machines are filtered, or that it cannot tell', async () => {
    const unknown = await check(() => {})
    expect(unknown('firewall')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('cannot'),
    })
    expect(unknown('nodes')).toMatchObject({ status: 'warning', fix: expect.stringContaining('/nodes') })
    const off = await check(lab => grant(lab, '/', true))
    expect(off('firewall')).toMatchObject({ status: 'warning', fix: expect.stringContaining('--enable 1') })
    expect(off('nodes')).toMatchObject({ status: 'ok' })
    const on = await check(lab => {
      grant(lab, '/', false)
      lab.emulator.state.clusterFirewall.options = { enable: 1 }
    })
    expect(on('firewall')).toMatchObject({ status: 'ok' })
  })

  it('finds a pool that is not there', async () => {
    const said = await check(lab => void lab.emulator.state.pools.delete('jobs'))
    expect(said('pool')).toMatchObject({
      status: 'failed',
      fix: expect.stringContaining('pveum pool add jobs'),
    })
  })

  it('never takes content away from a storage, and says so when it only cannot see it', async () => {
    const said = await check(
      lab => {
        const { storages } = lab.emulator.state
        storages.set('seeds', { ...storages.get('seeds')!, content: ['vztmpl', 'backup'] })
      },
      { provider: { injection: 'iso' } },
    )
    expect(said('seed')).toMatchObject({
      status: 'failed',
      fix: 'pvesm set seeds --content vztmpl,backup,iso',
    })
    const hidden = await check(lab => void lab.emulator.state.storages.delete('seeds'), {
      provider: { injection: 'iso' },
    })
    expect(hidden('seed')?.fix).not.toContain('pvesm set')
  })

  it('names the nodes that get no machines for want of the seeds storage', async () => {
    const said = await check(lab => {
      const { storages } = lab.emulator.state
      storages.set('seeds', { ...storages.get('seeds')!, nodes: ['pve1'] })
    })
    expect(said('seed')).toMatchObject({ status: 'warning', message: expect.stringContaining('pve2') })
  })

  it('fails a template without the agent only where the agent is needed', async () => {
    const bare = (lab: Lab) => {
      delete lab.emulator.state.vms.get(9000)!.config.agent
    }
    expect((await check(bare))('guest agent')).toMatchObject({ status: 'warning' })
    expect((await check(bare, { provider: { channel: 'agent' } }))('guest agent')).toMatchObject({
      status: 'failed',
    })
  })

  it('takes another way in where the token has no right to bring images, and says which is missing', async () => {
    const said = await check(
      lab => void lab.emulator.state.roles.get('DeputySeeds')!.delete('Datastore.Allocate'),
    )
    expect(said('injection')?.message).toContain('HTTP')
    expect(said('rights')).toMatchObject({
      status: 'warning',
      message: 'missing: Datastore.Allocate on /storage/seeds',
    })
  })

  it('asks for the rights on every storage of the template', async () => {
    const said = await check(lab => {
      lab.emulator.state.vms.get(9000)!.config.scsi1 = 'elsewhere:base-9000-disk-1,size=1G'
    })
    expect(said('rights')).toMatchObject({ message: expect.stringContaining('/storage/elsewhere') })
  })
})
