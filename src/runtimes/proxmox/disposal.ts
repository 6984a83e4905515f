import type { AppError } from '../../jobs/errors.ts'
import { forOperator } from '../../jobs/for-operator.ts'
import type { Machine } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import { createLimiter } from '../../proxmox/limiter.ts'
import { destroyVm } from './destroy.ts'
import { detailsOf } from './details.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'
import type { Reception } from './reception.ts'

/** Everything that belongs to a machine goes: a clone in the making, its VM, its seed image, its word with us. */
export const createDisposal = (
  runtime: ProxmoxRuntimeOptions,
  reception: Reception,
  onGone: (vmid: number) => void,
) => {
  const { proxmox } = runtime
  const deleting = createLimiter(runtime.parallel.deletes)
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

  const deleteSeed = async (node: string, volid: string, signal: AbortSignal): Promise<void> => {
    const [storage = ''] = volid.split(':')
    const at = path`/nodes/${node}/storage/${storage}/content/${volid}`
    try {
      const task = await proxmox.delete<string | null>(at, {}, { signal })
      if (task) await proxmox.waitTask(task, { signal, deadline: soon() })
    } catch (error) {
      const kind = proxmoxDetails(error)?.kind
      if (kind === 'missing') return
      throw kind === 'permission' ? undeletable(node, volid, storage) : error
    }
  }

  return async (machine: Machine, signal: AbortSignal): Promise<void> => {
    const { vmid, doubtful = [], node, seed, seedName, cloneTask, ready } = detailsOf(machine)
    const { owner, pool, vmids } = runtime
    reception.leave(machine.id)
    if (seedName) reception.unpublish(seedName)
    const cloned = ready || !cloneTask || (await settleClone(cloneTask, signal))
    const ids = new Set([...(vmid === undefined || !cloned ? [] : [vmid]), ...doubtful])
    const parts = [...ids].map(id => () => {
      const target = { machineId: machine.id, vmid: id, owner, pool, vmids, tagged: ready === true }
      return deleting(node ?? 'any', () => destroyVm(proxmox, target, signal), signal)
    })
    const seedNode = detailsOf(machine).seedNode ?? node
    if (seed && seedNode) parts.push(() => deleteSeed(seedNode, seed, signal))
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

const undeletable = (node: string, volid: string, storage: string): AppError =>
  forOperator(
    `The token may not delete the seed image ${volid} on ${node}.`,
    `Grant Datastore.Allocate on /storage/${storage}, a storage of its own: deputy proxmox setup. Or on ${node}: pvesm free ${volid}`,
  )
