import type { Machine } from '../../ports.ts'
import { createKeyedSemaphore } from '../../proxmox/keyed-semaphore.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { CallbackServer } from './callback-server.ts'
import { destroyVm } from './destroy-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import type { SeedImages } from './seed-images.ts'
import { detailsOf } from './vm-details.ts'

export interface MachineDestroyerOptions {
  readonly provider: ProxmoxProviderOptions
  readonly callbackServer: CallbackServer
  readonly seedImages: SeedImages
  onGone(vmid: number): void
}

/** Removes everything that belongs to a machine: an unfinished clone, its VM, its seed image, its session. */
export const createMachineDestroyer = ({
  provider,
  callbackServer,
  seedImages,
  onGone,
}: MachineDestroyerOptions) => {
  const { proxmox } = provider
  const deleting = createKeyedSemaphore(provider.parallel.deletes)
  const soon = () => proxmox.clock.now() + 60_000

  /** Stops the clone task; Proxmox VE then removes the partial clone. Returns false if another guest has the id. */
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
    const { owner, pool, vmids } = provider
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

/** Runs all parts one after another, then throws the first error. */
const each = async (parts: readonly (() => Promise<void>)[]): Promise<void> => {
  const failures: unknown[] = []
  for (const part of parts) await part().catch(error => failures.push(error))
  if (failures.length > 0) throw failures[0]
}
