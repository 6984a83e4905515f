import type { Machine } from '../../ports.ts'
import { createKeyedSemaphore } from '../../proxmox/keyed-semaphore.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { CallbackServer } from './callback-server.ts'
import { destroyVm } from './destroy-vm.ts'
import { detailsOf } from './machine-details.ts'
import type { ProxmoxRuntimeOptions } from './proxmox-runtime-options.ts'
import type { SeedImages } from './seed-images.ts'

export interface MachineDestroyerOptions {
  readonly runtime: ProxmoxRuntimeOptions
  readonly callbackServer: CallbackServer
  readonly seedImages: SeedImages
  onGone(vmid: number): void
}

/** Everything that belongs to a machine goes: a clone in the making, its VM, its seed image, its word with us. */
export const createMachineDestroyer = ({
  runtime,
  callbackServer,
  seedImages,
  onGone,
}: MachineDestroyerOptions) => {
  const { proxmox } = runtime
  const deleting = createKeyedSemaphore(runtime.parallel.deletes)
  const soon = () => proxmox.clock.now() + 60_000

  /** Proxmox VE removes what there is of a clone whose task is stopped. False: the id was somebody else's. */
  const settleClone = async (task: string, signal: AbortSignal): Promise<boolean> => {
    await proxmox.cancelTask(task, { signal }).catch(() => {})
    try {
      await proxmox.waitTask(task, { signal, deadline: soon() })
      return true
    } catch (error) {
      return proxmoxDetails(error)?.kind !== 'exists'
    }
  }

  return async (machine: Machine, signal: AbortSignal): Promise<void> => {
    const { vmid, doubtful = [], node, seed, seedName, cloneTask, ready } = detailsOf(machine)
    const { owner, pool, vmids } = runtime
    callbackServer.leave(machine.id)
    if (seedName) callbackServer.unpublish(seedName)
    await seedImages.settle(machine.id)
    const cloned = ready || !cloneTask || (await settleClone(cloneTask, signal))
    const ids = new Set([...(vmid === undefined || !cloned ? [] : [vmid]), ...doubtful])
    const parts = [...ids].map(id => () => {
      const target = { machineId: machine.id, vmid: id, owner, pool, vmids, tagged: ready === true }
      return deleting(node ?? 'any', () => destroyVm(proxmox, target, signal), signal)
    })
    const seedNode = detailsOf(machine).seedNode ?? node
    if (seed && seedNode)
      parts.push(() => seedImages.discard(machine.id, { node: seedNode, volid: seed }, signal))
    await each(parts)
    for (const id of ids) onGone(id)
  }
}

/** One after the other; what fails keeps none of the others from its end. */
const each = async (parts: readonly (() => Promise<void>)[]): Promise<void> => {
  const failures: unknown[] = []
  for (const part of parts) await part().catch(error => failures.push(error))
  if (failures.length > 0) throw failures[0]
}
