import type { Machine } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import { createLimiter } from '../../proxmox/limiter.ts'
import { destroyVm } from './destroy.ts'
import { detailsOf } from './details.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'
import type { Reception } from './reception.ts'

/** Everything that belongs to a machine goes: a clone in the making, its VM, its seed image, its word with us. */
export const createDisposal = (runtime: ProxmoxRuntimeOptions, reception: Reception) => {
  const { proxmox, log } = runtime
  const deleting = createLimiter(runtime.parallel.deletes)
  const soon = () => proxmox.clock.now() + 60_000

  /** Proxmox VE removes what there is of a clone whose task is stopped. */
  const settleClone = async (task: string, signal: AbortSignal): Promise<void> => {
    await proxmox.cancelTask(task, { signal }).catch(() => {})
    await proxmox.waitTask(task, { signal, deadline: soon() }).catch(() => {})
  }

  const deleteSeed = async (node: string, volid: string, signal: AbortSignal): Promise<void> => {
    const [storage = ''] = volid.split(':')
    const at = path`/nodes/${node}/storage/${storage}/content/${volid}`
    try {
      const task = await proxmox.delete<string | null>(at, {}, { signal })
      if (task) await proxmox.waitTask(task, { signal, deadline: soon() })
    } catch (error) {
      const kind = proxmoxDetails(error)?.kind
      if (kind === 'missing') return
      if (kind !== 'permission') throw error
      log.warn(
        { volid },
        'the token may not delete seed images: grant Datastore.Allocate on a storage of their own',
      )
    }
  }

  return async (machine: Machine, signal: AbortSignal): Promise<void> => {
    const { vmid, doubtful = [], node, seed, seedName, cloneTask, ready } = detailsOf(machine)
    reception.leave(machine.id)
    if (seedName) reception.unpublish(seedName)
    if (cloneTask && !ready) await settleClone(cloneTask, signal)
    for (const id of new Set([...(vmid === undefined ? [] : [vmid]), ...doubtful])) {
      const { owner, vmids, pool } = runtime
      const target = { machineId: machine.id, vmid: id, owner, vmids, pool }
      await deleting(node ?? 'any', () => destroyVm(proxmox, target, signal), signal)
    }
    if (seed && node) await deleteSeed(node, seed, signal)
  }
}
