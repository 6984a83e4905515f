import { join } from 'node:path'
import { parseProps } from '../../properties.ts'
import type { GuestSpec } from '../driver.ts'
import type { Way } from './passages.ts'

/** What a machine of the emulator boots: see test/vm/image. */
export interface MachineImage {
  readonly disk: string
  readonly kernel: string
  readonly initrd: string
}

export interface CommandOptions {
  readonly spec: GuestSpec
  readonly image: MachineImage
  readonly directory: string
  readonly disk: string
  readonly cdroms: readonly string[]
  readonly ways: readonly Way[]
  readonly kvm: boolean
}

export const AGENT_PORT = 'agent'
export const monitorSocket = (directory: string): string => join(directory, 'monitor')
export const agentSocket = (directory: string): string => join(directory, 'agent')
const consoleLog = (directory: string): string => join(directory, 'console')

/** The kernel is told what an emulated processor should not spend time on. */
const KERNEL_LINE =
  'root=/dev/sda rw console=ttyS0 quiet loglevel=4 mitigations=off nokaslr cryptomgr.notests no_timer_check systemd.show_status=0'

/** QEMU's arguments for a machine as its configuration describes it. */
export const qemuArguments = (options: CommandOptions): string[] => {
  const { spec, image, directory, disk, cdroms, kvm } = options
  const { cores = '1', memory = '512', net0, agent } = spec.config
  return [
    ...['-name', `vm-${spec.vmid}`, '-no-user-config', '-nodefaults', '-display', 'none'],
    ...['-machine', 'pc', '-smp', cores, '-m', memory],
    // Few features make a quick emulation. Without cx16, because QEMU 7 now and then spoils the flags in that
    // instruction, and the kernel panics.
    ...(kvm ? ['-accel', 'kvm', '-cpu', 'host'] : ['-accel', 'tcg,tb-size=256', '-cpu', 'Nehalem,-cx16']),
    ...['-kernel', image.kernel, '-initrd', image.initrd, '-append', KERNEL_LINE],
    ...['-serial', `file:${plain(consoleLog(directory))}`],
    ...['-qmp', `unix:${plain(monitorSocket(directory))}`],
    ...smbios(spec),
    ...['-device', 'virtio-scsi-pci,id=scsi'],
    ...['-drive', `file=${plain(disk)},format=qcow2,if=none,id=disk,cache=unsafe,discard=unmap`],
    ...['-device', 'scsi-hd,bus=scsi.0,drive=disk'],
    ...cdroms.flatMap(cdromArguments),
    ...(net0 === undefined ? [] : network(net0, options.ways)),
    ...(/^(1|enabled=1)/.test(agent ?? '') ? agentArguments(directory) : []),
  ]
}

/** Where Proxmox VE puts ide2, ide3, ide0 and ide1. */
const cdromArguments = (file: string, index: number): string[] => [
  ...['-drive', `file=${plain(file)},format=raw,if=none,id=cd${index},media=cdrom,readonly=on`],
  ...['-device', `ide-cd,drive=cd${index},bus=ide.${index < 2 ? 1 : 0},unit=${index % 2}`],
]

const smbios = ({ config, serial }: GuestSpec): string[] => {
  const { uuid } = parseProps(config.smbios1 ?? '', '')
  const fields = [
    ...(uuid === undefined ? [] : [`uuid=${uuid}`]),
    ...(serial === undefined ? [] : [`serial=${plain(serial)}`]),
  ]
  return fields.length === 0 ? [] : ['-smbios', ['type=1', ...fields].join(',')]
}

/** Without `restrict`, a guest would reach whatever listens on the host's own loopback. */
const network = (net0: string, ways: readonly Way[]): string[] => {
  const mac = /(?:^|,)\w+=((?:[0-9a-f]{2}:){5}[0-9a-f]{2})/i.exec(net0)?.[1]
  const forwards = ways.map(
    ({ guest, socket }) =>
      `guestfwd=tcp:${guest.host}:${guest.port}-cmd:socat STDIO UNIX-CONNECT:${plain(socket)}`,
  )
  return [
    ...['-netdev', ['user,id=net,restrict=on,ipv6=off', ...forwards].join(',')],
    ...['-device', `virtio-net-pci,netdev=net,romfile=${mac === undefined ? '' : `,mac=${mac}`}`],
  ]
}

const agentArguments = (directory: string): string[] => [
  ...['-device', 'virtio-serial-pci'],
  ...['-chardev', `socket,path=${plain(agentSocket(directory))},id=agent`],
  ...['-device', `virtserialport,chardev=agent,id=${AGENT_PORT},name=org.qemu.guest_agent.0`],
]

/** A comma ends a value unless it is doubled. */
const plain = (value: string): string => value.replaceAll(',', ',,')
