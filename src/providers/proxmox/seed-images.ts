import { type AppError, toAppError } from '../../jobs/errors.ts'
import { operatorError } from '../../jobs/operator-error.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { readConfig } from './cluster-guests.ts'
import { locateVm } from './locate-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

export interface SeedImage {
  /** The node of its machine. */
  readonly node: string
  readonly vmid: number
  /** Its CD-ROM drive; looked up when an earlier daemon attached the image. */
  readonly drive?: string
  readonly volid: string
  /** The node of the image, if the machine has moved to another node. */
  readonly seedNode?: string
}

/**
 * Pauses before each attempt. A short job ends before the first one, and its image is destroyed with its machine. The
 * later attempts wait for a guest that is locked or a cluster that restarts.
 */
const PAUSES_MS = [2000, 15_000, 60_000, 300_000, 900_000]
const DELETE_MS = 60_000

/**
 * Ejects and deletes the images of machines that have read them, in the background: an image contains the token of its
 * machine, and a guest with a local image in its drive cannot be migrated. If it fails, it is retried after the next
 * start of the daemon and when the machine is destroyed.
 */
export const createSeedImages = ({ proxmox, log }: Pick<ProxmoxProviderOptions, 'proxmox' | 'log'>) => {
  const underWay = new Map<string, { readonly ending: AbortController; readonly done: Promise<void> }>()
  const removed = new Set<string>()

  const remove = async (image: SeedImage, signal: AbortSignal): Promise<void> => {
    const { vmid, volid, seedNode = image.node } = image
    const { node, drive } = image.drive === undefined ? await findDrive(proxmox, image, signal) : image
    // Eject first: a guest whose image is missing does not start again.
    if (drive !== undefined)
      await proxmox.put(path`/nodes/${node}/qemu/${vmid}/config`, { [drive]: EMPTY }, { signal })
    else if (!(await isStored(proxmox, { node: seedNode, volid }, signal))) return
    await deleteSeed(proxmox, { node: seedNode, volid }, signal)
  }

  /** Resolves when the image is gone or the attempts are used up. */
  const insist = async ({ drive, ...image }: SeedImage, signal: AbortSignal): Promise<void> => {
    for (const [tries, pause] of PAUSES_MS.entries()) {
      await proxmox.clock.sleep(pause, signal)
      try {
        // After a failure the state of the drive is unknown.
        await remove(tries === 0 && drive !== undefined ? { ...image, drive } : image, signal)
        removed.add(image.volid)
        return
      } catch (error) {
        signal.throwIfAborted()
        log.debug({ vmid: image.vmid, reason: (error as Error).message }, 'a seed image stays for now')
      }
    }
  }

  const settle = async (machineId: string): Promise<void> => {
    const work = underWay.get(machineId)
    work?.ending.abort()
    await work?.done
  }

  return {
    /** Deletes the image in the background. Call it when the machine has read the image, and after a restart. */
    retire(machineId: string, image: SeedImage): void {
      const ending = new AbortController()
      const done = insist(image, ending.signal)
        .catch(() => {})
        .finally(() => underWay.delete(machineId))
      underWay.set(machineId, { ending, done })
    },
    /** Deletes what is left of the image. */
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

/** Ejecting works in a running guest; removing the drive would wait until it is stopped. */
const EMPTY = 'none,media=cdrom'

/** The node of the machine, and the drive with the image; none when it was ejected. */
const findDrive = async (
  proxmox: Proxmox,
  { node, vmid, volid }: SeedImage,
  signal: AbortSignal,
): Promise<{ node: string; drive: string | undefined }> => {
  const found = await locateVm(proxmox, { node, vmid }, signal)
  if (found.kind !== 'there') throw new Error(`VM ${vmid} is ${found.kind}`)
  const config = await readConfig(proxmox, { node: found.node, vmid }, signal)
  const holds = (value: unknown) =>
    String(value)
      .replace(/^file=/, '')
      .split(',')[0] === volid
  return { node: found.node, drive: Object.keys(config).find(key => holds(config[key])) }
}

/** Checked first: deleting a missing image leaves a failed task in the log of the cluster. */
const isStored = async (
  proxmox: Proxmox,
  { node, volid }: { node: string; volid: string },
  signal: AbortSignal,
): Promise<boolean> => {
  const [storage = ''] = volid.split(':')
  const at = path`/nodes/${node}/storage/${storage}/content`
  const volumes = await proxmox.get<{ volid: string }[]>(at, { content: 'iso' }, { signal })
  return volumes.some(volume => volume.volid === volid)
}

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
    throw kind === 'permission' ? undeletable(node, volid, error) : error
  }
}

const undeletable = (node: string, volid: string, error: unknown): AppError =>
  operatorError(
    `The token may not delete the seed image ${volid} on ${node}.`,
    `Delete it on ${node}: pvesm free ${volid}. ${toAppError(error).hint ?? ''}`,
  )
