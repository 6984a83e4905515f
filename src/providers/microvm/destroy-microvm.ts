import { removeMachineDirectory } from './machine-directory.ts'
import type { ProviderContext } from './provider-context.ts'
import { killQemu } from './qemu-process.ts'

/** Ends the VM of a machine and removes its files. Resolves when nothing of it is left. */
export const destroyMicrovm = async (
  { stateDir, links }: Pick<ProviderContext, 'stateDir' | 'links'>,
  machineId: string,
  signal: AbortSignal,
): Promise<void> => {
  await killQemu(machineId, signal)
  links.end(machineId)
  removeMachineDirectory(stateDir, machineId)
}
