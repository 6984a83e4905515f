import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { GuestDriver } from '../driver.ts'
import { type MachineImage, type Passage, qemuArguments } from './command.ts'
import { prepareDisk } from './disk.ts'
import { kvmWorks } from './kvm.ts'
import { startMachine } from './machine.ts'

export interface QemuGuestOptions {
  readonly image: MachineImage
  /** For disks, sockets and consoles of the machines. Its path must be short: it holds Unix sockets. */
  readonly directory: string
  /** What machines can reach; nothing unless told. */
  readonly passages?: readonly Passage[]
  readonly program?: string
  /** How long a machine may take to switch off when asked to. */
  readonly shutdownMs?: number
  readonly agentTimeoutMs?: number
}

/** Guests as real machines: a kernel, systemd, cloud-init and a guest agent in QEMU, with KVM where it works. */
export const qemuGuests = (options: QemuGuestOptions): GuestDriver => {
  const { image, passages = [], program = 'qemu-system-x86_64' } = options
  let probe: Promise<boolean> | undefined
  const homeOf = (vmid: number) => join(options.directory, String(vmid))
  return {
    start: async spec => {
      probe ??= kvmWorks(program)
      const kvm = await probe
      const directory = homeOf(spec.vmid)
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const disk = join(directory, 'disk.qcow2')
      await prepareDisk(disk, image.disk, spec.config)
      return startMachine({
        spec,
        directory,
        program,
        shutdownMs: options.shutdownMs ?? 120_000,
        agentTimeoutMs: options.agentTimeoutMs ?? 60_000,
        arguments: cdroms => qemuArguments({ spec, image, directory, disk, passages, kvm, cdroms }),
      })
    },
    destroyed: vmid => rm(homeOf(vmid), { recursive: true, force: true }),
  }
}

export type { MachineImage, Passage } from './command.ts'
