import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GuestDriver } from '../driver.ts'
import { type MachineImage, qemuArguments } from './command.ts'
import { copyDisk, prepareDisk } from './disk.ts'
import { kvmWorks } from './kvm.ts'
import { startMachine } from './machine.ts'
import type { Passage } from './passages.ts'

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
  const diskOf = (vmid: number) => join(homeOf(vmid), 'disk.qcow2')
  const furnish = (vmid: number) => mkdir(homeOf(vmid), { recursive: true, mode: 0o700 })
  return {
    start: async spec => {
      probe ??= kvmWorks(program)
      const kvm = await probe
      const directory = homeOf(spec.vmid)
      const disk = diskOf(spec.vmid)
      await furnish(spec.vmid)
      await prepareDisk(disk, image.disk, spec.config)
      return startMachine({
        spec,
        directory,
        program,
        shutdownMs: options.shutdownMs ?? 120_000,
        agentTimeoutMs: options.agentTimeoutMs ?? 60_000,
        passages,
        arguments: own => qemuArguments({ spec, image, directory, disk, kvm, ...own }),
      })
    },
    imported: async (vmid, content) => {
      await furnish(vmid)
      await writeFile(diskOf(vmid), content)
    },
    cloned: async ({ from, to, full }) => {
      await furnish(to)
      await copyDisk({ from: diskOf(from), to: diskOf(to), full })
    },
    destroyed: vmid => rm(homeOf(vmid), { recursive: true, force: true }),
  }
}

export type { MachineImage } from './command.ts'
export type { Passage } from './passages.ts'
