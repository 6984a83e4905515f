import { writeIso } from '../../../../src/guest/iso.ts'
import { die } from '../errors.ts'
import { mayConnect } from '../filter.ts'
import type { Context } from '../operation.ts'
import { parseProps } from '../properties.ts'
import type { State, Vm } from '../state.ts'
import { drivesOf, volumeOf } from '../vm.ts'

export const powerOn = async (
  { state, guests }: Pick<Context, 'state' | 'guests'>,
  vm: Vm,
): Promise<void> => {
  const drives = drivesOf(vm.config).filter(drive => drive.cdrom && drive.volid !== 'none')
  const images = drives
    .filter(drive => !drive.cloudinit)
    .map(drive => volumeOf(state, drive.volid, vm.node) ?? die(`volume '${drive.volid}' does not exist`))
    .map(volume => volume.data ?? Buffer.alloc(0))
  vm.status = 'running'
  vm.startedAt = Date.now()
  vm.wedged = false
  const incarnation = vm.startedAt
  try {
    vm.guest = await guests.start({
      vmid: vm.vmid,
      node: vm.node,
      config: { ...vm.config },
      // Of two seeds nobody knows which one wins; here it is always the wrong one.
      cdroms: [...(drives.some(drive => drive.cloudinit) ? [cloudinitImage(vm)] : []), ...images],
      serial: serialOf(vm.config.smbios1),
      mayConnect: destination => mayConnect(state, vm, destination),
      poweredOff: () => {
        if (vm.status === 'running' && vm.startedAt === incarnation) void powerOff(vm)
      },
    })
  } catch (error) {
    vm.status = 'stopped'
    throw error
  }
}

export const powerOff = async (vm: Vm): Promise<void> => {
  const guest = vm.guest
  vm.guest = undefined
  vm.status = 'stopped'
  await guest?.stop()
}

export const stopAll = async (state: State): Promise<void> => {
  await Promise.all([...state.vms.values()].map(powerOff))
}

/** What Proxmox VE writes at every start: names and keys, and nothing to run. */
const cloudinitImage = ({ vmid, config }: Vm): Buffer => {
  const hostname = config.name ?? `VM${vmid}`
  return writeIso('cidata', [
    { name: 'meta-data', content: Buffer.from(`instance-id: ${vmid}\n`) },
    {
      name: 'user-data',
      content: Buffer.from(`#cloud-config\nhostname: ${hostname}\nmanage_etc_hosts: true\n`),
    },
  ])
}

const serialOf = (smbios: string | undefined): string | undefined => {
  const { serial, base64 } = parseProps(smbios ?? '', '')
  if (serial === undefined) return undefined
  return base64 === '1' ? Buffer.from(serial, 'base64').toString() : serial
}
