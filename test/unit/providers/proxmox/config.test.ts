import { describe, expect, it } from 'vitest'
import { bootDisk, drivesOf, seedDrive } from '../../../../src/providers/proxmox/drives.ts'
import { netDevices } from '../../../../src/providers/proxmox/net-device.ts'

const reversed = (config: Record<string, unknown>) => Object.fromEntries(Object.entries(config).reverse())

describe('the network device of a clone', () => {
  const firewall = { firewall: true, privateAddresses: false }

  it('is filtered and keeps its MAC and everything else', () => {
    const net0 = 'virtio=BC:24:11:00:00:01,bridge=vmbr0,mtu=1400,queues=4'
    expect(netDevices({ net0 }, firewall)).toEqual({ net0: `${net0},firewall=1` })
    expect(netDevices({ net0: `${net0},firewall=0` }, firewall)).toEqual({ net0: `${net0},firewall=1` })
  })

  it('gets the bridge, the tag and the rate of the settings, also one without the others', () => {
    const net0 = 'e1000=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=3'
    expect(netDevices({ net0 }, { ...firewall, tag: 7, rate: 12.5 })).toEqual({
      net0: 'e1000=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=7,rate=12.5',
    })
    expect(netDevices({ net0 }, { ...firewall, bridge: 'vmbr9' }).net0).toContain('bridge=vmbr9')
  })

  it('is not the only one that is filtered', () => {
    const config = { net0: 'virtio=A,bridge=a,firewall=1', net1: 'virtio=B,bridge=b' }
    expect(netDevices(config, { ...firewall, bridge: 'a', tag: 5 })).toEqual({
      net0: 'virtio=A,bridge=a,firewall=1,tag=5',
      net1: 'virtio=B,bridge=b,firewall=1',
    })
  })

  it('is left alone when nothing is to be changed, and made where there is none', () => {
    expect(netDevices({ net0: 'virtio=A,bridge=a' }, { ...firewall, firewall: false })).toEqual({})
    expect(netDevices({ net0: 'virtio=A,bridge=a,firewall=1' }, firewall)).toEqual({})
    expect(netDevices({}, firewall)).toEqual({})
    expect(netDevices({}, { ...firewall, bridge: 'a' })).toEqual({ net0: 'virtio,bridge=a,firewall=1' })
  })
})

describe('the drives of a guest', () => {
  const config = {
    scsi1: 'local-lvm:vm-1-disk-2,size=100G',
    scsi0: 'local-lvm:vm-1-disk-1,iothread=1,size=8G',
    efidisk0: 'local-lvm:vm-1-disk-0,efitype=4m,size=528K',
    ide0: 'none,media=cdrom',
    ide2: 'local:iso/debian.iso,media=cdrom,size=600M',
    boot: 'order=ide2;scsi0;net0',
  }

  it('are told apart', () => {
    expect(drivesOf(config)).toEqual([
      { key: 'efidisk0', kind: 'disk', storage: 'local-lvm', bytes: 528 * 1024 },
      { key: 'ide0', kind: 'empty', storage: '', bytes: 0 },
      { key: 'ide2', kind: 'cdrom', storage: 'local', bytes: 600 * 2 ** 20 },
      { key: 'scsi0', kind: 'disk', storage: 'local-lvm', bytes: 8 * 2 ** 30 },
      { key: 'scsi1', kind: 'disk', storage: 'local-lvm', bytes: 100 * 2 ** 30 },
    ])
    for (const volume of ['a:vm-1-cloudinit', 'a:1/vm-1-cloudinit.qcow2', 'a:cloudinit'])
      expect(drivesOf({ ide2: `${volume},media=cdrom` })[0]).toMatchObject({
        kind: 'cloudinit',
        storage: 'a',
      })
    expect(drivesOf({ ide2: 'a:iso/my-cloudinit-notes.iso,media=cdrom' })[0]!.kind).toBe('cdrom')
  })

  it('are booted from by their order, in whatever order the keys come', () => {
    for (const seen of [config, reversed(config)]) {
      expect(bootDisk(seen)?.key).toBe('scsi0')
      expect(bootDisk({ ...seen, boot: 'order=scsi1' })?.key).toBe('scsi1')
      expect(bootDisk({ ...seen, boot: undefined })?.key).toBe('scsi0')
      expect(bootDisk({ ...seen, boot: 'c', bootdisk: 'scsi1' })?.key).toBe('scsi1')
    }
    expect(bootDisk({ scsi10: 'a:x,size=1G', scsi2: 'a:y,size=1G' })?.key).toBe('scsi2')
    expect(bootDisk({ ide2: 'none,media=cdrom' })).toBeUndefined()
  })

  it('leave one place for our seed and no rival to it', () => {
    const two = { ide0: 'a:vm-1-cloudinit,media=cdrom', ide2: 'none,media=cdrom', sata1: 'a:cloudinit' }
    for (const seen of [two, reversed(two)])
      expect(seedDrive(seen)).toEqual({ drive: 'ide0', rivals: ['sata1'] })
    expect(seedDrive({ ide3: 'none,media=cdrom' })).toEqual({ drive: 'ide3', rivals: [] })
    expect(seedDrive({ ide2: 'a:vm-1-disk-0,size=1G' })).toEqual({ drive: 'ide0', rivals: [] })
  })
})
