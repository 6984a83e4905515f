import { aliasCreate, confirmed, guestsOf, nodeStatus, storages } from './composite/alias-actions.ts'
import { createLxc, createVm } from './composite/create-guest.ts'
import { record, rows, task } from './shape/answer-format.ts'
import * as p from './table/common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './table/define-row.ts'

const VM_COLUMNS =
  'vmid:int name status node cpu:pct mem:gib maxmem:gib disk:gib maxdisk:gib uptime:s template:bool'
const at = {
  node: p.node,
  vmid: p.vmid,
  transport: p.oneOf('ssh|api|auto', 'ignored: always the API', { local: true }),
}
const AT = 'vmid* node transport'
const confirm = p.bool('must be true', { local: true })
const kind = p.oneOf('vm|ct', undefined, { wire: { vm: 'qemu', ct: 'lxc' } })

type Kind = 'qemu' | 'lxc'
const power = (name: string, about: string, type: Kind, verb: string) =>
  tool(
    name,
    about,
    { ...at, wait: p.wait },
    elevated(`POST /nodes/{node}/${type}/{vmid}/status/${verb}`, `${AT} wait`, task),
  )

// biome-ignore format: it is a table
/** The 22 tools of mcp-proxmox-admin under their original names, for existing prompts and scripts. */
export const aliases: Toolset = {
  name: 'proxmox-admin',
  about: 'The tools of mcp-proxmox-admin under their names.',
  tools: [
    tool('proxmox_vm_list', 'VMs of the cluster.', { node: p.node, transport: at.transport, ...p.paging },
      read('GET /cluster/resources', `node transport ${p.PAGED}`, rows(VM_COLUMNS), { run: guestsOf('qemu') })),
    power('proxmox_vm_start', 'Start a VM.', 'qemu', 'start'),
    power('proxmox_vm_stop', 'Power a VM off.', 'qemu', 'stop'),
    power('proxmox_vm_restart', 'Reboot a VM.', 'qemu', 'reboot'),
    tool('proxmox_vm_shutdown', 'Shut a VM down.', { ...at, timeout: p.int(0, 3600, 'seconds, default 60'), wait: p.wait },
      elevated('POST /nodes/{node}/qemu/{vmid}/status/shutdown', `${AT} timeout wait`, task, { preset: { timeout: '60' } })),
    tool('proxmox_vm_create', 'Create a VM.', {
      node: p.node, vmid: p.vmid, transport: at.transport, name: p.text(), memory: p.int(16, 4_194_304, 'MiB'), cores: p.int(1, 8192),
      sockets: p.int(1, 64), cpu: p.text(), storage: p.storage,
      diskSize: p.text('e.g. 32G', { api: 'disk_size' }), scsihw: p.text(), net0: p.text(), bios: p.oneOf('seabios|ovmf'), boot: p.text(),
      iso: p.volume, ostype: p.text(), agent: p.bool(), onboot: p.bool(), start: p.bool(), description: p.text(), tags: p.text(), wait: p.wait,
    }, elevated('POST /nodes/{node}/qemu', 'node* vmid* name* transport memory cores sockets cpu storage diskSize scsihw net0 bios boot iso ostype agent onboot start description tags wait', task, { run: aliasCreate(createVm, { memory: 2048, cpu: 'host', disk_size: '32G', scsihw: 'virtio-scsi-pci' }) })),
    tool('proxmox_vm_destroy', 'Destroy a VM.', { ...at, confirm, purge: p.bool(), destroyUnreferencedDisks: p.bool('default true', { api: 'destroy-unreferenced-disks' }), wait: p.wait },
      destructive('DELETE /nodes/{node}/qemu/{vmid}', `${AT} confirm* purge destroyUnreferencedDisks wait`, task, { preset: { 'destroy-unreferenced-disks': '1' }, run: confirmed('DELETE /nodes/{node}/qemu/{vmid}') })),
    tool('proxmox_vm_clone', 'Clone a VM.', { ...at, newid: p.newid, name: p.text(), target: p.target, full: p.bool('default true'), storage: p.storage, format: p.oneOf('raw|qcow2|vmdk'), description: p.text(), wait: p.wait },
      elevated('POST /nodes/{node}/qemu/{vmid}/clone', `${AT} newid* name target full storage format description wait`, task, { preset: { full: '1' } })),

    tool('proxmox_ct_list', 'Containers of the cluster.', { node: p.node, transport: at.transport, ...p.paging },
      read('GET /cluster/resources', `node transport ${p.PAGED}`, rows(VM_COLUMNS), { run: guestsOf('lxc') })),
    power('proxmox_ct_start', 'Start a container.', 'lxc', 'start'),
    power('proxmox_ct_stop', 'Power a container off.', 'lxc', 'stop'),
    power('proxmox_ct_restart', 'Reboot a container.', 'lxc', 'reboot'),
    tool('proxmox_ct_create', 'Create a container.', {
      node: p.node, vmid: p.vmid, transport: at.transport, ostemplate: p.volume, hostname: p.text(), memory: p.int(16, 4_194_304, 'MiB'),
      swap: p.int(0, 4_194_304, 'MiB'), cores: p.int(1, 8192), cpulimit: p.num(0, 128), storage: p.storage,
      rootfs: p.text('e.g. 8G'), net0: p.text(), nameserver: p.text(), searchdomain: p.text(), unprivileged: p.bool(), features: p.text(),
      password: p.secret(), sshKeys: p.text(undefined, { api: 'ssh-public-keys' }), onboot: p.bool(), start: p.bool(), description: p.text(),
      tags: p.text(), wait: p.wait,
    }, elevated('POST /nodes/{node}/lxc', 'node* vmid* ostemplate* transport hostname memory swap cores cpulimit storage rootfs net0 nameserver searchdomain unprivileged features password sshKeys onboot start description tags wait', task, { run: aliasCreate(createLxc, { swap: 512, cores: 1 }) })),
    tool('proxmox_ct_destroy', 'Destroy a container.', { ...at, confirm, purge: p.bool(), force: p.bool('even if running'), wait: p.wait },
      destructive('DELETE /nodes/{node}/lxc/{vmid}', `${AT} confirm* purge force wait`, task, { run: confirmed('DELETE /nodes/{node}/lxc/{vmid}') })),
    tool('proxmox_ct_clone', 'Clone a container.', { ...at, newid: p.newid, hostname: p.text(), target: p.target, full: p.bool('default true'), storage: p.storage, description: p.text(), wait: p.wait },
      elevated('POST /nodes/{node}/lxc/{vmid}/clone', `${AT} newid* hostname target full storage description wait`, task, { preset: { full: '1' } })),

    tool('proxmox_node_list', 'Nodes of the cluster.', { transport: at.transport },
      read('GET /nodes', 'transport', rows('node status cpu:pct maxcpu:int mem:gib maxmem:gib disk:gib maxdisk:gib uptime:s'))),
    tool('proxmox_node_status', 'State of a node.', { node: p.node, transport: at.transport },
      read('GET /nodes', 'node* transport', record('node status cpu:pct maxcpu:int mem:gib maxmem:gib disk:gib maxdisk:gib uptime:s'), { run: nodeStatus })),
    tool('proxmox_storage_list', 'Storages, of one node or all.', { node: p.node, transport: at.transport, ...p.paging },
      read('GET /cluster/resources', `node transport ${p.PAGED}`, rows('storage node type content status shared:bool used:gib total:gib avail:gib'), { run: storages })),

    tool('proxmox_snapshot_list', 'Snapshots of a guest.', { ...at, type: kind },
      read('GET /nodes/{node}/{type}/{vmid}/snapshot', `${AT} type*`, rows('name description snaptime:time parent'))),
    tool('proxmox_snapshot_create', 'Take a snapshot.', { ...at, type: kind, name: { ...p.snapname, api: 'snapname' }, description: p.text(), wait: p.wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/snapshot', `${AT} type* name* description wait`, task)),
    tool('proxmox_snapshot_restore', 'Roll back to a snapshot.', { ...at, type: kind, name: p.snapname, wait: p.wait },
      destructive('POST /nodes/{node}/{type}/{vmid}/snapshot/{name}/rollback', `${AT} type* name* wait`, task)),
    tool('proxmox_snapshot_delete', 'Delete a snapshot.', { ...at, type: kind, name: p.snapname, confirm, wait: p.wait },
      destructive('DELETE /nodes/{node}/{type}/{vmid}/snapshot/{name}', `${AT} type* name* confirm* wait`, task, { run: confirmed('DELETE /nodes/{node}/{type}/{vmid}/snapshot/{name}') })),
  ],
}
