import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { listGuests } from './cluster-guests.ts'
import { isGone } from './destroy-vm.ts'
import type { VmRef } from './vm-ref.ts'

export type VmLocation =
  | { readonly kind: 'there'; readonly node: string; readonly running: boolean }
  | { readonly kind: 'gone' }
  /** The id is in use, but the token may not read the guest. */
  | { readonly kind: 'hidden' }

/** Delay before checking a free id again: the list of guests is briefly empty while pmxcfs restarts. */
const AGAIN_MS = 1000
const TIMEOUT_MS = 20_000

/**
 * Finds the node of a VM and whether it runs. The VM may have been migrated, and a VM that the token may not read may
 * still run, so it is gone only if its id is free. Throws on cluster errors.
 */
export const locateVm = async (
  proxmox: Proxmox,
  { node, vmid }: VmRef,
  signal: AbortSignal,
): Promise<VmLocation> => {
  const here = await lookAt(proxmox, node, vmid, signal)
  if (here) return here
  if (await isVmidFree(proxmox, vmid, signal)) return { kind: 'gone' }
  const moved = (await listGuests(proxmox, signal)).find(guest => guest.vmid === vmid)
  return (moved && (await lookAt(proxmox, moved.node, vmid, signal))) ?? { kind: 'hidden' }
}

export const isVmidFree = async (proxmox: Proxmox, vmid: number, signal: AbortSignal): Promise<boolean> => {
  if (!(await isGone(proxmox, vmid, signal))) return false
  await proxmox.clock.sleep(AGAIN_MS, signal)
  return isGone(proxmox, vmid, signal)
}

const lookAt = async (
  proxmox: Proxmox,
  node: string,
  vmid: number,
  signal: AbortSignal,
): Promise<VmLocation | undefined> => {
  const at = path`/nodes/${node}/qemu/${vmid}/status/current`
  try {
    const { status } = await proxmox.get<{ status?: string }>(at, {}, { signal, timeoutMs: TIMEOUT_MS })
    return { kind: 'there', node, running: status === 'running' }
  } catch (error) {
    const kind = proxmoxDetails(error)?.kind
    if (kind === 'missing' || kind === 'permission' || kind === 'node_down') return undefined
    throw error
  }
}
