import { path } from './encode.ts'
import type { Proxmox } from './proxmox-client.ts'

const DISK = /^(scsi|virtio|sata|ide|efidisk|tpmstate)\d+$/

/** The storages of the disks of a template; undefined if there is no such guest. */
export const templateStorages = async (proxmox: Proxmox, vmid: number): Promise<string[] | undefined> => {
  const guests = await proxmox.get<{ vmid: number; node: string }[]>('/cluster/resources', { type: 'vm' })
  const found = guests.find(guest => guest.vmid === vmid)
  if (found === undefined) return undefined
  const config = await proxmox.get<Record<string, unknown>>(path`/nodes/${found.node}/qemu/${vmid}/config`)
  const disks = Object.entries(config)
    .filter(([key, value]) => DISK.test(key) && !String(value).includes('media=cdrom'))
    .map(([, value]) => String(value).split(':')[0]!)
  return [...new Set(disks)]
}
