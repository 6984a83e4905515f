import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { cpioArchive } from './cpio-archive.ts'
import type { VmImage } from './image-store.ts'
import { machineDirectory, machineUid, makeMachineDirectory } from './machine-directory.ts'
import { AGENT, INIT } from './programs.ts'
import type { ProviderContext } from './provider-context.ts'
import { IMAGE, qemuArguments, RUN, sandboxedQemu, type VmMemory, type VmSize } from './qemu-command.ts'
import { startQemu } from './qemu-process.ts'
import { findProgram } from './required-tools.ts'

export interface VmRequest {
  readonly machineId: string
  readonly image: VmImage
  readonly size: VmSize
  /** A file that holds its memory. Without one, its memory is its own. */
  readonly memory?: { readonly fd: number; readonly use: VmMemory }
}

/** Starts the QEMU of a VM. `until` waits for work that ends early, with the reason, when QEMU does. */
export const startVm = (
  { stateDir }: Pick<ProviderContext, 'stateDir'>,
  { machineId, image, size, memory }: VmRequest,
): { until<T>(work: Promise<T>): Promise<T> } => {
  const uid = machineUid(machineId)
  makeMachineDirectory(stateDir, machineId, uid)
  const directory = machineDirectory(stateDir, machineId)
  writeInitrd(image.directory, directory)
  const qemu = findProgram('qemu-system-x86_64') ?? 'qemu-system-x86_64'
  const command = sandboxedQemu(
    { qemu, imageDirectory: image.directory, machineDirectory: directory, uid },
    qemuArguments({ machineId, size, memory: memory?.use, image: IMAGE, run: RUN }),
  )
  const ended = startQemu(command, { log: join(directory, 'qemu.log'), fd: memory?.fd }).then(said =>
    Promise.reject(hasEnded(said)),
  )
  // A VM that ends later is found to be gone by those who use it.
  ended.catch(() => undefined)
  return { until: work => Promise.race([work, ended]) }
}

/** The kernel unpacks one archive after the other. */
const writeInitrd = (imageDirectory: string, directory: string): void => {
  const programs = cpioArchive([
    { path: 'init', content: INIT, executable: true },
    { path: 'agent.pl', content: AGENT },
  ])
  const initrd = Buffer.concat([readFileSync(join(imageDirectory, 'initrd')), programs])
  const path = join(directory, 'initrd')
  writeFileSync(path, initrd)
  // QEMU has a user id of its own, and the daemon a umask that lets nobody else read.
  chmodSync(path, 0o644)
}

const hasEnded = (said: string): AppError =>
  new AppError('unavailable', `QEMU ended while the VM was starting: ${said || 'it gave no reason'}.`, {
    hint: 'Check this computer: deputy doctor',
  })
