import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { parseSize } from '../../jobs/sizes.ts'
import type { CreateRequest } from '../../ports.ts'
import { cpioArchive } from './cpio-archive.ts'
import { destroyMicrovm } from './destroy-microvm.ts'
import { findImage } from './image-store.ts'
import { detailsOf } from './machine-details.ts'
import { machineDirectory, machineUid, makeMachineDirectory } from './machine-directory.ts'
import { AGENT, INIT } from './programs.ts'
import type { ProviderContext } from './provider-context.ts'
import { IMAGE, qemuArguments, RUN, sandboxedQemu, type VmSize } from './qemu-command.ts'
import { processesOf, startQemu } from './qemu-process.ts'
import { findProgram, missingTools, notInstalled } from './required-tools.ts'
import { noImage } from './unmet-microvm-requirement.ts'

/** Boots the VM of a machine. Resolves when its agent answers. */
export const provisionMicrovm = async (
  context: ProviderContext,
  { machine, manifest, signal, remember, timed }: CreateRequest,
): Promise<void> => {
  const { stateDir, links } = context
  if (detailsOf(machine).boot !== undefined) {
    if (processesOf(machine.id).length > 0 || manifest?.machine !== undefined) return
  }
  // What an earlier attempt has left may be half booted.
  await destroyMicrovm(context, machine.id, signal)
  const missing = missingTools('run')
  if (missing.length > 0) throw notInstalled(missing)
  const image = findImage(context.imagesDir, context.image)
  if (image === undefined)
    throw new AppError('unsupported', `${noImage(context.image).reason}.`, noImage(context.image))
  const size = sizeFor(manifest, context.defaults)
  const uid = machineUid(machine.id)
  await remember({ image: image.name })
  const begun = performance.now()
  makeMachineDirectory(stateDir, machine.id, uid)
  const directory = machineDirectory(stateDir, machine.id)
  writeInitrd(image.directory, directory)
  const command = sandboxedQemu(
    {
      qemu: findProgram('qemu-system-x86_64') ?? 'qemu-system-x86_64',
      imageDirectory: image.directory,
      machineDirectory: directory,
      uid,
    },
    qemuArguments({ machineId: machine.id, size, image: IMAGE, run: RUN }),
  )
  const qemu = startQemu(command, join(directory, 'qemu.log'))
  await Promise.race([links.to(machine.id, signal), qemu.ended.then(said => Promise.reject(failed(said)))])
  timed?.({ boot: Math.round(performance.now() - begun) })
  await remember({ boot: randomBytes(8).toString('hex'), isolation: isolationOf(image.kernel, size) })
}

/** The kernel unpacks one archive after the other. */
const writeInitrd = (imageDirectory: string, directory: string): void => {
  const programs = cpioArchive([
    { path: 'init', content: INIT, executable: true },
    { path: 'agent.pl', content: AGENT },
  ])
  const initrd = Buffer.concat([readFileSync(join(imageDirectory, 'initrd')), programs])
  writeFileSync(join(directory, 'initrd'), initrd, { mode: 0o644 })
}

const sizeFor = (manifest: Manifest | undefined, defaults: VmSize): VmSize => {
  const { cpu, memory, disk } = manifest?.resources ?? {}
  return {
    ...defaults,
    cpus: cpu === undefined ? defaults.cpus : Math.max(1, Math.ceil(cpu)),
    ...(memory !== undefined && { memory: parseSize(memory) }),
    ...(disk !== undefined && { disk: parseSize(disk) }),
  }
}

const isolationOf = (kernel: string, { cpus }: VmSize): string[] => [
  `VM of its own (QEMU, emulated, ${cpus} CPU${cpus === 1 ? '' : 's'})`,
  `own kernel ${kernel}`,
  'QEMU in a sandbox: own user, no network, no capabilities, seccomp',
  'user 1000 in the VM',
]

const failed = (said: string): AppError =>
  new AppError('unavailable', `QEMU ended while the VM was booting: ${said || 'it gave no reason'}.`, {
    hint: 'Check this computer: deputy doctor',
  })
