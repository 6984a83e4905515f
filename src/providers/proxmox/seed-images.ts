import { type AppError, toAppError } from '../../jobs/errors.ts'
import { operatorError } from '../../jobs/operator-error.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { readConfig } from './cluster-guests.ts'
import { locateVm } from './locate-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

export interface SeedImage {
  /** Where its machine is. */
  readonly node: string
  readonly vmid: number
  /** The CD-ROM drive it is in; looked up where an earlier daemon has put it there. */
  readonly drive?: string
  readonly volid: string
  /** Where the image is, if the machine has moved away from it. */
  readonly seedNode?: string
}

/**
 * Before each attempt. A job that is over before the first takes its image along; nobody needs to eject it. The others
 * sit out a guest that is locked and a cluster that restarts.
 */
const PAUSES_MS = [2000, 15_000, 60_000, 300_000, 900_000]
const DELETE_MS = 60_000

/**
 * Takes the image from machines that have read it, beside everything else: the token of the machine is in it, and a
 * guest with a local image in its drive cannot be moved to another node. What cannot be done now is done after the next
 * start of the daemon, or when the machine is destroyed.
 */
export const createSeedImages = ({ proxmox, log }: Pick<ProxmoxProviderOptions, 'proxmox' | 'log'>) => {
  const underWay = new Map<string, { readonly ending: AbortController; readonly done: Promise<void> }>()
  const removed = new Set<string>()

  const remove = async (image: SeedImage, signal: AbortSignal): Promise<void> => {
    const { vmid, volid, seedNode = image.node } = image
    const { node, drive } = image.drive === undefined ? await findDrive(proxmox, image, signal) : image
    // First out of the drive: a guest whose image is missing does not start again.
    if (drive !== undefined)
      await proxmox.put(path`/nodes/${node}/qemu/${vmid}/config`, { [drive]: EMPTY }, { signal })
    else if (!(await isStored(proxmox, { node: seedNode, volid }, signal))) return
    await deleteSeed(proxmox, { node: seedNode, volid }, signal)
  }

  /** Resolves when it is gone, or was tried often enough. */
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
    /** The machine has read it. Also after a restart: what is gone already is found gone. */
    retire(machineId: string, image: SeedImage): void {
      const ending = new AbortController()
      const done = insist(image, ending.signal)
        .catch(() => {})
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

/** Where its machine is now, and the drive that holds it; none when it was ejected. */
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

/** To delete what is gone would leave a failed task in the log of the cluster. */
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
