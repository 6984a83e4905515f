import { AppError } from '../jobs/errors.ts'
import { type Params, path } from './encode.ts'
import type { Proxmox } from './proxmox-client.ts'
import { proxmoxDetails } from './proxmox-errors.ts'

export interface TemplateOptions {
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
  onStep?(step: string): void
  readonly signal?: AbortSignal
}

const PREPARE_MS = 20 * 60_000
const LOOK_MS = 2000
const CANCEL_MS = 60_000
const SEED_DRIVE = 'ide2'

/** Makes a template of a cloud image through the API: the import, one boot to complete it, the conversion. */
export const buildTemplate = async (proxmox: Proxmox, options: TemplateOptions): Promise<void> => {
  if (!/^[^:\s]+:import\/[^,\s]+\.(qcow2|raw|vmdk)$/.test(options.image)) {
    throw new AppError('invalid', `"${options.image}" is no disk image on a storage.`, {
      hint: 'Upload it with the content type "import", then name it as local:import/debian-13.qcow2',
    })
  }
  options.onStep?.(`importing ${options.image}`)
  await importImage(proxmox, options)
  // From here on the VM is ours to remove.
  try {
    options.signal?.throwIfAborted()
    if (options.prepare) await completeImage(proxmox, options, options.prepare)
    options.onStep?.(`making a template of VM ${options.vmid}`)
    await task(proxmox, options, 'post', `${at(options)}/template`)
  } catch (error) {
    await removeVm(proxmox, options).catch(cause => {
      throw new AppError(
        'unavailable',
        `${(error as Error).message} VM ${options.vmid} is left: ${(cause as Error).message}`,
        {
          hint: `On ${options.node}: qm stop ${options.vmid}; qm destroy ${options.vmid}`,
          cause: error,
        },
      )
    })
    throw options.signal?.aborted ? options.signal.reason : error
  } finally {
    if (options.prepare)
      await task(proxmox, {}, 'delete', seedPath(options, options.prepare)).catch(() => {
        // It was never uploaded, or is overwritten by the next attempt.
      })
  }
}

/** Resolves when the VM is there, also for a maker who was interrupted meanwhile. */
const importImage = async (proxmox: Proxmox, options: TemplateOptions): Promise<void> => {
  options.signal?.throwIfAborted()
  // Not to be interrupted: without its answer nobody could end what it has begun.
  const upid = await proxmox.post<string>(path`/nodes/${options.node}/qemu`, {
    vmid: options.vmid,
    name: options.name,
    cores: 1,
    memory: 1024,
    ostype: 'l26',
    agent: 'enabled=1',
    scsihw: 'virtio-scsi-single',
    scsi0: `${options.storage}:0,import-from=${options.image}`,
    boot: 'order=scsi0',
    net0: `virtio,bridge=${options.bridge},firewall=1`,
    serial0: 'socket',
    vga: 'serial0',
  })
  try {
    await proxmox.waitTask(upid, callOf(options))
  } catch (error) {
    // An import that is ended takes away what it made. One that failed may have met the VM of somebody else.
    if (!options.signal?.aborted) throw error
    await proxmox.cancelTask(upid)
    await proxmox.waitTask(upid, { deadline: proxmox.clock.now() + CANCEL_MS }).catch(cause => {
      throw proxmoxDetails(cause)?.exitStatus === undefined ? cause : options.signal?.reason
    })
  }
}

/** Boots the image once with the seed, and waits until it has switched itself off. */
const completeImage = async (
  proxmox: Proxmox,
  options: TemplateOptions,
  { storage, seed }: NonNullable<TemplateOptions['prepare']>,
): Promise<void> => {
  const call = callOf(options)
  const filename = seedName(options)
  await proxmox.upload({
    node: options.node,
    storage,
    content: 'iso',
    filename,
    file: Buffer.from(seed),
    ...call,
  })
  const volume = `${storage}:iso/${filename},media=cdrom`
  await proxmox.put(`${at(options)}/config`, { [SEED_DRIVE]: volume, boot: 'order=scsi0' }, call)
  options.onStep?.(`booting VM ${options.vmid} once: it installs what is missing, and switches itself off`)
  await task(proxmox, options, 'post', `${at(options)}/status/start`)
  const { prepareMs = PREPARE_MS } = options
  const end = proxmox.clock.now() + prepareMs
  while (!(await isStopped(proxmox, options))) {
    if (proxmox.clock.now() >= end) throw unfinished(options, prepareMs)
    await proxmox.clock.sleep(Math.min(LOOK_MS, prepareMs / 5), options.signal)
  }
  await proxmox.put(`${at(options)}/config`, { delete: SEED_DRIVE, boot: 'order=scsi0' }, call)
}

/** A cluster that is away for a while is no reason to begin anew. */
const isStopped = async (proxmox: Proxmox, options: TemplateOptions): Promise<boolean> => {
  try {
    const now = await proxmox.get<{ status?: string }>(`${at(options)}/status/current`, {}, callOf(options))
    return now.status === 'stopped'
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable' && error.retryable) return false
    throw error
  }
}

/** Also when the maker was interrupted: what is half made is of no use to anybody. */
const removeVm = async (proxmox: Proxmox, options: TemplateOptions): Promise<void> => {
  const patient = { ...options, signal: AbortSignal.timeout(120_000) }
  await task(proxmox, patient, 'post', `${at(options)}/status/stop`)
  await task(proxmox, patient, 'delete', at(options), { purge: true, 'destroy-unreferenced-disks': true })
}

const task = async (
  proxmox: Proxmox,
  options: Pick<TemplateOptions, 'signal'>,
  verb: 'post' | 'delete',
  where: string,
  params: Params = {},
): Promise<void> => {
  const call = callOf(options)
  const upid = await proxmox[verb]<string | null>(where, params, call)
  // A volume that is gone at once has no task.
  if (upid) await proxmox.waitTask(upid, call)
}

const callOf = ({ signal }: Pick<TemplateOptions, 'signal'>) => (signal ? { signal } : {})
const at = ({ node, vmid }: TemplateOptions): string => path`/nodes/${node}/qemu/${vmid}`
const seedName = ({ vmid }: TemplateOptions): string => `deputy-template-${vmid}.iso`
const seedPath = (options: TemplateOptions, { storage }: { storage: string }): string =>
  path`/nodes/${options.node}/storage/${storage}/content/${`${storage}:iso/${seedName(options)}`}`

const unfinished = ({ vmid, image, bridge }: TemplateOptions, ms: number): AppError =>
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
}: Pick<TemplateOptions, 'vmid' | 'name' | 'storage' | 'bridge'>): string[] => [
  '# On any computer with libguestfs-tools: what the runner needs, and a clean slate for cloud-init.',
  'virt-customize -a debian-13-genericcloud-amd64.qcow2 --install curl,qemu-guest-agent --run-command "cloud-init clean --logs --machine-id"',
  '# On a node of the cluster:',
  `qm create ${vmid} --name ${name} --memory 1024 --cores 1 --ostype l26 --agent enabled=1 --net0 virtio,bridge=${bridge},firewall=1`,
  `qm set ${vmid} --scsihw virtio-scsi-single --scsi0 ${storage}:0,import-from=$PWD/debian-13-genericcloud-amd64.qcow2`,
  `qm set ${vmid} --boot order=scsi0 --serial0 socket --vga serial0`,
  `qm template ${vmid}`,
]
