import { describe, expect, it } from 'vitest'
import { qemuArguments } from '../../../support/pve/guests/qemu/command.ts'

const commandOf = (config: Record<string, string>, more: { serial?: string; cdroms?: string[] } = {}) => {
  const spec = {
    vmid: 7,
    node: 'pve1',
    config,
    cdroms: [],
    serial: more.serial,
    mayConnect: () => true,
    poweredOff: () => {},
  }
  const args = qemuArguments({
    spec,
    image: { disk: '/i/disk', kernel: '/i/kernel', initrd: '/i/initrd' },
    directory: '/run/vm,7',
    disk: '/run/vm,7/disk.qcow2',
    cdroms: more.cdroms ?? [],
    ways: [{ guest: { host: '10.0.2.100', port: 8765 }, socket: '/run/vm,7/way-0' }],
    kvm: false,
  })
  return {
    args,
    of: (flag: string) => args.filter((_, index) => args[index - 1] === flag),
  }
}

describe('the command line of QEMU', () => {
  it('gives the machine what its configuration says', () => {
    const { of } = commandOf({ cores: '3', memory: '2048' })
    expect(of('-smp')).toEqual(['3'])
    expect(of('-m')).toEqual(['2048'])
  })

  it('shuts the machine in, except for the passages', () => {
    const { of } = commandOf({ net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1' })
    const [netdev] = of('-netdev')
    expect(netdev).toMatch(/^user,id=net,restrict=on,ipv6=off,/)
    expect(netdev).toContain('guestfwd=tcp:10.0.2.100:8765-cmd:socat STDIO UNIX-CONNECT:/run/vm,,7/way-0')
    expect(of('-device').join(' ')).toContain('mac=BC:24:11:00:00:01')
  })

  it('leaves out what the configuration does not have', () => {
    const { of, args } = commandOf({})
    expect(of('-netdev')).toEqual([])
    expect(of('-smbios')).toEqual([])
    expect(args.join(' ')).not.toContain('guest_agent')
  })

  it('lets no value add an option of its own', () => {
    const serial = 'ds=nocloud-net;s=http://x/,manufacturer=evil'
    const { of } = commandOf({ smbios1: 'uuid=4c4c4544-0042-4810-8056-b4c04f395931' }, { serial })
    expect(of('-smbios')).toEqual([
      'type=1,uuid=4c4c4544-0042-4810-8056-b4c04f395931,serial=ds=nocloud-net;s=http://x/,,manufacturer=evil',
    ])
    expect(of('-drive')[0]).toContain('file=/run/vm,,7/disk.qcow2,')
  })

  it('puts the first two CD-ROMs where ide2 and ide3 are', () => {
    const { of } = commandOf({}, { cdroms: ['/a.iso', '/b.iso', '/c.iso'] })
    expect(of('-device').filter(device => device.startsWith('ide-cd'))).toEqual([
      'ide-cd,drive=cd0,bus=ide.1,unit=0',
      'ide-cd,drive=cd1,bus=ide.1,unit=1',
      'ide-cd,drive=cd2,bus=ide.0,unit=0',
    ])
  })
})
