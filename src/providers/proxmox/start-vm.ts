import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { retryThroughOutage } from './retry-through-outage.ts'
import type { VmRef } from './vm-ref.ts'

const TASK_MS = 600_000

/** Switches a VM on and waits for the end of the task. */
export const startVm = async (proxmox: Proxmox, at: VmRef, signal: AbortSignal): Promise<void> => {
  const begin = async (): Promise<void> => {
    const task = await proxmox.post<string>(
      path`/nodes/${at.node}/qemu/${at.vmid}/status/start`,
      {},
      { signal },
    )
    await proxmox.waitTask(task, { signal, deadline: proxmox.clock.now() + TASK_MS })
  }
  await retryThroughOutage(proxmox, begin, { signal }).catch(error => {
    // Already running: an earlier start request succeeded and its response was lost.
    if (proxmoxDetails(error)?.kind !== 'running') throw error
  })
}
