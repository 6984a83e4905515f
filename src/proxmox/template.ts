import { AppError } from '../jobs/errors.ts'
import type { Proxmox } from './client.ts'
import { path } from './encode.ts'

export interface TemplateWish {
  readonly node: string
  readonly vmid: number
  readonly name: string
  /** A disk image on a storage: `local:import/debian-13.qcow2`. */
  readonly image: string
  /** Where the disk goes. */
  readonly storage: string
  readonly bridge: string
  readonly signal?: AbortSignal
}

/** Makes a template of a cloud image through the API: the import, the settings that jobs need, the conversion. */
export const buildTemplate = async (proxmox: Proxmox, wish: TemplateWish): Promise<void> => {
  if (!/^[^:\s]+:import\/[^,\s]+\.(qcow2|raw|vmdk)$/.test(wish.image)) {
    throw new AppError('invalid', `"${wish.image}" is no disk image on a storage.`, {
      hint: 'Upload it with the content type "import", then name it as local:import/debian-13.qcow2',
    })
  }
  const call = wish.signal ? { signal: wish.signal } : {}
  const create = await proxmox.post<string>(
    path`/nodes/${wish.node}/qemu`,
    {
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
    },
    call,
  )
  await proxmox.waitTask(create, call)
  const convert = await proxmox.post<string>(path`/nodes/${wish.node}/qemu/${wish.vmid}/template`, {}, call)
  await proxmox.waitTask(convert, call)
}

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
