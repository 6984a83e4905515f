import { AppError } from '../jobs/errors.ts'
import { type Params, path } from './encode.ts'
import type { Proxmox } from './proxmox-client.ts'
import { proxmoxDetails } from './proxmox-errors.ts'

export interface TemplateWish {
  readonly node: string
  readonly vmid: number
  readonly name: string
  /** A disk image on a storage: `local:import/debian-13.qcow2`. */
  readonly image: string
  /** Where the disk goes. */
  readonly storage: string
  readonly bridge: string
  /** A seed for the first boot, which switches the machine off when it is done; absent when the image is complete. */
  readonly prepare?: { readonly storage: string; readonly seed: Uint8Array }
  /** How long the first boot may take. */
  readonly prepareMs?: number
  /** Hears what is done next; it takes minutes. */
  told?(step: string): void
  readonly signal?: AbortSignal
}

const PREPARE_MS = 20 * 60_000
const LOOK_MS = 2000
const CANCEL_MS = 60_000
const SEED_DRIVE = 'ide2'

/** Makes a template of a cloud image through the API: the import, one boot to complete it, the conversion. */
export const buildTemplate = async (proxmox: Proxmox, wish: TemplateWish): Promise<void> => {
  if (!/^[^:\s]+:import\/[^,\s]+\.(qcow2|raw|vmdk)$/.test(wish.image)) {
    throw new AppError('invalid', `"${wish.image}" is no disk image on a storage.`, {
      hint: 'Upload it with the content type "import", then name it as local:import/debian-13.qcow2',
    })
  }
  wish.told?.(`importing ${wish.image}`)
  await importImage(proxmox, wish)
  // From here on the VM is ours to remove.
  try {
    wish.signal?.throwIfAborted()
    if (wish.prepare) await completeImage(proxmox, wish, wish.prepare)
    wish.told?.(`making a template of VM ${wish.vmid}`)
    await task(proxmox, wish, 'post', `${at(wish)}/template`)
  } catch (error) {
    await removeVm(proxmox, wish).catch(cause => {
      throw new AppError(
        'unavailable',
        `${(error as Error).message} VM ${wish.vmid} is left: ${(cause as Error).message}`,
        {
          hint: `On ${wish.node}: qm stop ${wish.vmid}; qm destroy ${wish.vmid}`,
          cause: error,
        },
      )
    })
    throw wish.signal?.aborted ? wish.signal.reason : error
  } finally {
    if (wish.prepare)
      await task(proxmox, {}, 'delete', seedPath(wish, wish.prepare)).catch(() => {
        // It was never uploaded, or is overwritten by the next attempt.
      })
  }
}

/** Resolves when the VM is there, also for a maker who was interrupted meanwhile. */
const importImage = async (proxmox: Proxmox, wish: TemplateWish): Promise<void> => {
  wish.signal?.throwIfAborted()
  // Not to be interrupted: without its answer nobody could end what it has begun.
  const upid = await proxmox.post<string>(path`/nodes/${wish.node}/qemu`, {
    vmid: wish.vmid,
    name: wish.name,
    cores: 1,
    memory: 1024,
    ostype: 'l26',
    agent: 'enabled=1',
    scsihw: 'virtio-scsi-single',
    scsi0: `${wish.storage}:0,import-from=${wish.image}`,
    boot: 'order=scsi0',
    net0: `virtio,bridge=${wish.bridge},firewall=1`,
    serial0: 'socket',
    vga: 'serial0',
  })
  try {
    await proxmox.waitTask(upid, callOf(wish))
  } catch (error) {
    // An import that is ended takes away what it made. One that failed may have met the VM of somebody else.
    if (!wish.signal?.aborted) throw error
    await proxmox.cancelTask(upid)
    await proxmox.waitTask(upid, { deadline: proxmox.clock.now() + CANCEL_MS }).catch(cause => {
      throw proxmoxDetails(cause)?.exitStatus === undefined ? cause : wish.signal?.reason
    })
  }
}

/** Boots the image once with the seed, and waits until it has switched itself off. */
const completeImage = async (
  proxmox: Proxmox,
  wish: TemplateWish,
  { storage, seed }: NonNullable<TemplateWish['prepare']>,
): Promise<void> => {
  const call = callOf(wish)
  const filename = seedName(wish)
  await proxmox.upload({
    node: wish.node,
    storage,
    content: 'iso',
    filename,
    file: Buffer.from(seed),
    ...call,
  })
  const volume = `${storage}:iso/${filename},media=cdrom`
  await proxmox.put(`${at(wish)}/config`, { [SEED_DRIVE]: volume, boot: 'order=scsi0' }, call)
  wish.told?.(`booting VM ${wish.vmid} once: it installs what is missing, and switches itself off`)
  await task(proxmox, wish, 'post', `${at(wish)}/status/start`)
  const { prepareMs = PREPARE_MS } = wish
  const end = proxmox.clock.now() + prepareMs
  while (!(await isStopped(proxmox, wish))) {
    if (proxmox.clock.now() >= end) throw unfinished(wish, prepareMs)
    await proxmox.clock.sleep(Math.min(LOOK_MS, prepareMs / 5), wish.signal)
  }
  await proxmox.put(`${at(wish)}/config`, { delete: SEED_DRIVE, boot: 'order=scsi0' }, call)
}

/** A cluster that is away for a while is no reason to begin anew. */
const isStopped = async (proxmox: Proxmox, wish: TemplateWish): Promise<boolean> => {
  try {
    const now = await proxmox.get<{ status?: string }>(`${at(wish)}/status/current`, {}, callOf(wish))
    return now.status === 'stopped'
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable' && error.retryable) return false
    throw error
  }
}

/** Also when the maker was interrupted: what is half made is of no use to anybody. */
const removeVm = async (proxmox: Proxmox, wish: TemplateWish): Promise<void> => {
  const patient = { ...wish, signal: AbortSignal.timeout(120_000) }
  await task(proxmox, patient, 'post', `${at(wish)}/status/stop`)
  await task(proxmox, patient, 'delete', at(wish), { purge: true, 'destroy-unreferenced-disks': true })
}

const task = async (
  proxmox: Proxmox,
  wish: Pick<TemplateWish, 'signal'>,
  verb: 'post' | 'delete',
  where: string,
  params: Params = {},
): Promise<void> => {
  const call = callOf(wish)
  const upid = await proxmox[verb]<string | null>(where, params, call)
  // A volume that is gone at once has no task.
  if (upid) await proxmox.waitTask(upid, call)
}

const callOf = ({ signal }: Pick<TemplateWish, 'signal'>) => (signal ? { signal } : {})
const at = ({ node, vmid }: TemplateWish): string => path`/nodes/${node}/qemu/${vmid}`
const seedName = ({ vmid }: TemplateWish): string => `deputy-template-${vmid}.iso`
const seedPath = (wish: TemplateWish, { storage }: { storage: string }): string =>
  path`/nodes/${wish.node}/storage/${storage}/content/${`${storage}:iso/${seedName(wish)}`}`

const unfinished = ({ vmid, image, bridge }: TemplateWish, ms: number): AppError =>
  new AppError(
    'timeout',
    `VM ${vmid} of ${image} did not switch itself off within ${Math.ceil(ms / 60_000)} minutes.`,
    {
      hint: `It must run cloud-init and reach its package servers through ${bridge}. To look: make it by hand (deputy proxmox template) and watch its console.`,
    },
  )

/** The same by hand, with what the image must hold. */
export const templateLines = ({
  vmid,
  name,
  storage,
  bridge,
}: Pick<TemplateWish, 'vmid' | 'name' | 'storage' | 'bridge'>): string[] => [
  '# On any computer with libguestfs-tools: what the runner needs, and a clean slate for cloud-init.',
  'virt-customize -a debian-13-genericcloud-amd64.qcow2 --install curl,qemu-guest-agent --run-command "cloud-init clean --logs --machine-id"',
  '# On a node of the cluster:',
  `qm create ${vmid} --name ${name} --memory 1024 --cores 1 --ostype l26 --agent enabled=1 --net0 virtio,bridge=${bridge},firewall=1`,
  `qm set ${vmid} --scsihw virtio-scsi-single --scsi0 ${storage}:0,import-from=$PWD/debian-13-genericcloud-amd64.qcow2`,
  `qm set ${vmid} --boot order=scsi0 --serial0 socket --vga serial0`,
  `qm template ${vmid}`,
]
