import type { AppError } from '../../jobs/errors.ts'
import { forOperator } from '../../jobs/for-operator.ts'
import type { Proxmox } from '../../proxmox/client.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'

export interface SeedImage {
  readonly node: string
  readonly vmid: number
  /** The CD-ROM drive it is in. */
  readonly drive: string
  readonly volid: string
}

/** A job that is over sooner takes its image along; nobody needs to eject it. */
const PAUSE_MS = 2000
const DELETE_MS = 60_000

/**
 * Takes the image from machines that have read it, beside everything else: the token of the machine is in it, and a
 * guest with a local image in its drive cannot be moved to another node. What cannot be done now is done when the
 * machine is destroyed.
 */
export const createSeedImages = ({ proxmox, log }: Pick<ProxmoxRuntimeOptions, 'proxmox' | 'log'>) => {
  const underWay = new Map<string, { readonly ending: AbortController; readonly done: Promise<void> }>()
  const removed = new Set<string>()

  const remove = async ({ node, vmid, drive, volid }: SeedImage, signal: AbortSignal): Promise<void> => {
    await proxmox.clock.sleep(PAUSE_MS, signal)
    // First out of the drive: a guest whose image is missing does not start again.
    await proxmox.put(path`/nodes/${node}/qemu/${vmid}/config`, { [drive]: EMPTY }, { signal })
    await deleteSeed(proxmox, { node, volid }, signal)
    removed.add(volid)
  }

  const settle = async (machineId: string): Promise<void> => {
    const work = underWay.get(machineId)
    work?.ending.abort()
    await work?.done
  }

  return {
    /** The machine has read it. */
    retire(machineId: string, image: SeedImage): void {
      const ending = new AbortController()
      const done = remove(image, ending.signal)
        .catch(error => {
          if (!ending.signal.aborted)
            log.debug({ vmid: image.vmid, reason: (error as Error).message }, 'a seed image stays for now')
        })
        .finally(() => underWay.delete(machineId))
      underWay.set(machineId, { ending, done })
    },
    /** Whatever is left of it goes. */
    async discard(machineId: string, { node, volid }: { node: string; volid: string }, signal: AbortSignal) {
      await settle(machineId)
      if (!removed.has(volid)) await deleteSeed(proxmox, { node, volid }, signal)
      removed.delete(volid)
    },
    settle,
    close: async (): Promise<void> => {
      await Promise.all([...underWay.keys()].map(settle))
    },
  }
}

export type SeedImages = ReturnType<typeof createSeedImages>

/** Proxmox VE ejects at once what the drive of a running guest had; to take the drive itself away it would wait. */
const EMPTY = 'none,media=cdrom'

const deleteSeed = async (
  proxmox: Proxmox,
  { node, volid }: { node: string; volid: string },
  signal: AbortSignal,
): Promise<void> => {
  const [storage = ''] = volid.split(':')
  const at = path`/nodes/${node}/storage/${storage}/content/${volid}`
  try {
    const task = await proxmox.delete<string | null>(at, {}, { signal })
    if (task) await proxmox.waitTask(task, { signal, deadline: proxmox.clock.now() + DELETE_MS })
  } catch (error) {
    const kind = proxmoxDetails(error)?.kind
    if (kind === 'missing') return
    throw kind === 'permission' ? undeletable(node, volid, storage) : error
  }
}

const undeletable = (node: string, volid: string, storage: string): AppError =>
  forOperator(
    `The token may not delete the seed image ${volid} on ${node}.`,
    `Grant Datastore.Allocate on /storage/${storage}, a storage of its own: deputy proxmox setup. Or on ${node}: pvesm free ${volid}`,
  )
