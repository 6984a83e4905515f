import { randomBytes } from 'node:crypto'
import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { parseSize } from '../../jobs/sizes.ts'
import type { CreateRequest } from '../../ports.ts'
import { destroyMicrovm } from './destroy-microvm.ts'
import { findImage } from './image-store.ts'
import { detailsOf } from './machine-details.ts'
import type { ProviderContext } from './provider-context.ts'
import type { VmSize } from './qemu-command.ts'
import { processesOf } from './qemu-process.ts'
import { missingTools, notInstalled } from './required-tools.ts'
import { restoreVm, type Snapshot } from './snapshot.ts'
import { startVm, type VmRequest } from './start-vm.ts'
import { noImage } from './unmet-microvm-requirement.ts'

/** Starts the VM of a machine: from a snapshot, or by booting it. Resolves when its agent answers. */
export const provisionMicrovm = async (
  context: ProviderContext,
  { machine, manifest, signal, remember, timed }: CreateRequest,
): Promise<void> => {
  const { links } = context
  if (detailsOf(machine).boot !== undefined) {
    if ((await processesOf(machine.id)).length > 0 || manifest?.machine !== undefined) return
  }
  // What an earlier attempt has left may be half booted.
  await destroyMicrovm(context, machine.id, signal)
  const missing = missingTools('run')
  if (missing.length > 0) throw notInstalled(missing)
  const image = findImage(context.imagesDir, context.image)
  if (image === undefined)
    throw new AppError('unsupported', `${noImage(context.image).reason}.`, noImage(context.image))
  const size = sizeFor(manifest, context.defaults)
  await remember({ image: image.name })
  const begun = performance.now()
  const vm = { machineId: machine.id, image, size }
  // A VM of another size than its snapshot is not possible.
  const snapshot =
    manifest?.resources === undefined ? await context.snapshots.of(image, size, signal) : undefined
  if (snapshot === undefined || !(await isRestored(context, vm, snapshot, signal)))
    await startVm(context, vm).until(links.to(machine.id, signal))
  timed?.({ boot: Math.round(performance.now() - begun) })
  await remember({ boot: randomBytes(8).toString('hex'), isolation: isolationOf(image.kernel, size) })
}

/** False when the VM must boot: its snapshot may be of a QEMU that was updated since. */
const isRestored = async (
  context: ProviderContext,
  vm: VmRequest,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<boolean> => {
  try {
    await restoreVm(context, vm, snapshot, signal)
    return true
  } catch (error) {
    if (signal.aborted) throw error
    context.snapshots.drop(snapshot, error)
    await destroyMicrovm(context, vm.machineId, signal)
    return false
  }
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
