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
  /** Storage for the disk. */
  readonly storage: string
  readonly bridge: string
  /** Seed of a first boot that prepares the image and shuts the VM down. Absent if the image needs no preparation. */
  readonly prepare?: { readonly storage: string; readonly seed: Uint8Array }
  /** Timeout of the first boot. */
  readonly prepareMs?: number
  /** Called with each step, because building takes minutes. */
  onStep?(step: string): void
  readonly signal?: AbortSignal
}

const PREPARE_MS = 20 * 60_000
const POLL_MS = 2000
const CANCEL_MS = 60_000
const SEED_DRIVE = 'ide2'

/** Builds a template from a cloud image through the API: imports it, boots it once to prepare it, and converts it. */
export const buildTemplate = async (proxmox: Proxmox, options: TemplateOptions): Promise<void> => {
  if (!/^[^:\s]+:import\/[^,\s]+\.(qcow2|raw|vmdk)$/.test(options.image)) {
    throw new AppError('invalid', `Invalid disk image "${options.image}".`, {
      hint: 'Upload it with the content type "import", then name it as local:import/debian-13.qcow2',
    })
  }
  options.onStep?.(`importing ${options.image}`)
  await importImage(proxmox, options)
  // From here on we created the VM and must remove it on failure.
  try {
    options.signal?.throwIfAborted()
    if (options.prepare) await completeImage(proxmox, options, options.prepare)
    options.onStep?.(`converting VM ${options.vmid} to a template`)
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
        // Ignore: it was never uploaded, or the next attempt overwrites it.
      })
  }
}

/** Resolves when the VM exists, even if `signal` was aborted in the meantime. */
const importImage = async (proxmox: Proxmox, options: TemplateOptions): Promise<void> => {
  options.signal?.throwIfAborted()
  // Do not pass the signal: without the UPID in the response, the import could not be cancelled.
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
    // A cancelled import removes its VM. A failed one may have found the VMID in use, so do not remove that VM.
    if (!options.signal?.aborted) throw error
    await proxmox.cancelTask(upid)
    await proxmox.waitTask(upid, { deadline: proxmox.clock.now() + CANCEL_MS }).catch(cause => {
      throw proxmoxDetails(cause)?.exitStatus === undefined ? cause : options.signal?.reason
    })
  }
}

/** Boots the image once with the seed and waits until it has shut itself down. */
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
  options.onStep?.(`booting VM ${options.vmid} once: it installs missing packages and shuts itself down`)
  await task(proxmox, options, 'post', `${at(options)}/status/start`)
  const { prepareMs = PREPARE_MS } = options
  const end = proxmox.clock.now() + prepareMs
  while (!(await isStopped(proxmox, options))) {
    if (proxmox.clock.now() >= end) throw unfinished(options, prepareMs)
    await proxmox.clock.sleep(Math.min(POLL_MS, prepareMs / 5), options.signal)
  }
  await proxmox.put(`${at(options)}/config`, { delete: SEED_DRIVE, boot: 'order=scsi0' }, call)
}

/** Temporary outages of the cluster do not abort the build. */
const isStopped = async (proxmox: Proxmox, options: TemplateOptions): Promise<boolean> => {
  try {
    const now = await proxmox.get<{ status?: string }>(`${at(options)}/status/current`, {}, callOf(options))
    return now.status === 'stopped'
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable' && error.retryable) return false
    throw error
  }
}

/** Runs also after an abort, with its own timeout: an incomplete VM is useless. */
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
  // Deleting a volume may finish at once, without a task.
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
    `VM ${vmid} of ${image} did not shut itself down within ${Math.ceil(ms / 60_000)} minutes.`,
    {
      hint: `It must run cloud-init and reach its package servers through ${bridge}. To debug: build it by hand (deputy proxmox template) and watch its console.`,
    },
  )

/** The commands to build a template by hand. */
export const templateLines = ({
  vmid,
  name,
  storage,
  bridge,
}: Pick<TemplateOptions, 'vmid' | 'name' | 'storage' | 'bridge'>): string[] => [
  '# On any computer with libguestfs-tools: install what the runner needs, and reset cloud-init.',
  'virt-customize -a debian-13-genericcloud-amd64.qcow2 --install curl,qemu-guest-agent --run-command "cloud-init clean --logs --machine-id"',
  '# On a node of the cluster:',
  `qm create ${vmid} --name ${name} --memory 1024 --cores 1 --ostype l26 --agent enabled=1 --net0 virtio,bridge=${bridge},firewall=1`,
  `qm set ${vmid} --scsihw virtio-scsi-single --scsi0 ${storage}:0,import-from=$PWD/debian-13-genericcloud-amd64.qcow2`,
  `qm set ${vmid} --boot order=scsi0 --serial0 socket --vga serial0`,
  `qm template ${vmid}`,
]
