import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { readConfig } from './cluster-guests.ts'
import { bootDisk, type Drive, drivesOf } from './drives.ts'
import { tagsOf } from './identity.ts'
import { netDevices } from './net-device.ts'
import type { NetworkOptions } from './proxmox-provider-options.ts'
import type { VmRef } from './vm-ref.ts'

export interface Configuration {
  readonly at: VmRef
  readonly owner: string
  readonly network: NetworkOptions
  readonly wanted: {
    readonly cores: number
    /** MiB */
    readonly memory: number
    readonly disk: number | undefined
  }
  locked<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  readonly signal: AbortSignal
}

const RESIZE_MS = 600_000

/** Configures a clone for the job, overriding the template. Resolves with the resulting configuration. */
export const configureClone = async (
  proxmox: Proxmox,
  { at, owner, network, wanted, locked, signal }: Configuration,
): Promise<Readonly<Record<string, unknown>>> => {
  const base = path`/nodes/${at.node}/qemu/${at.vmid}`
  const present = await readConfig(proxmox, at, signal)
  const changes = {
    tags: tagsOf(owner),
    // Cores count per socket, a balloon may be no bigger than the memory, and a protected VM cannot be destroyed.
    sockets: 1,
    cores: wanted.cores,
    memory: wanted.memory,
    balloon: 0,
    onboot: false,
    protection: false,
    ...netDevices(present, network),
    // A machine that installs updates before it does anything else is of no use.
    ...(drivesOf(present).some(drive => drive.kind === 'cloudinit') ? { ciupgrade: false } : {}),
    ...(present.vcpus === undefined ? {} : { delete: 'vcpus' }),
  }
  await locked(() => proxmox.put(`${base}/config`, changes, { signal }), signal)
  await enlarge(proxmox, { base, disk: bootDisk(present), bytes: wanted.disk, locked, signal })
  // A network device without an address gets one from Proxmox VE.
  const isNew = Object.keys(changes).some(key => /^net\d+$/.test(key) && present[key] === undefined)
  return isNew ? readConfig(proxmox, at, signal) : { ...present, ...changes }
}

interface Enlargement extends Pick<Configuration, 'locked' | 'signal'> {
  readonly base: string
  readonly disk: Drive | undefined
  readonly bytes: number | undefined
}

const enlarge = async (
  proxmox: Proxmox,
  { base, disk, bytes, locked, signal }: Enlargement,
): Promise<void> => {
  if (disk === undefined || bytes === undefined || bytes <= disk.bytes) return
  const size = `${Math.ceil(bytes / 2 ** 20)}M`
  await locked(async () => {
    // Before 8.0 there is no task to wait for.
    const task = await proxmox.put<string | null>(`${base}/resize`, { disk: disk.key, size }, { signal })
    if (task) await proxmox.waitTask(task, { signal, deadline: proxmox.clock.now() + RESIZE_MS })
  }, signal)
}
