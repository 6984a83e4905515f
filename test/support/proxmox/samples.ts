import { changesOf } from '../../../src/mcp/tools/proxmox/action-arguments.ts'
import type { Param } from '../../../src/mcp/tools/proxmox/table/common-params.ts'
import type { Row, Tool } from '../../../src/mcp/tools/proxmox/table/define-row.ts'
import { UPID } from './fake-cluster.ts'

/** A value each parameter accepts; by tool and name where the name alone does not say it. */
const BY_TOOL: Record<string, unknown> = {
  'proxmox_node_power.node': 'pve3',
  'proxmox_node_bulk.node': 'pve3',
  'proxmox_guest_network.net': 'net1',
  'proxmox_guest_network update.net': 'net0',
  'proxmox_node_disk.disk': '/dev/sda',
  'proxmox_node_disk_admin.disk': '/dev/sdb',
  'proxmox_vm_disk.disk': 'scsi1',
  'proxmox_guest_disk_resize.size': '+5G',
  'proxmox_node_config.name': 'new.lab new',
  'proxmox_node_config.ip': '192.0.2.9',
  'proxmox_ceph_pool.size': 3,
  'proxmox_cluster_backup_job.vmid': '100,101',
  'proxmox_cluster_backup_job.dow': 'mon,tue',
  'proxmox_cluster_backup_job.exclude': '101',
  'proxmox_node_replication.id': '100-0',
  'proxmox_cluster_replication_job.id': '100-0',
  'proxmox_sdn_vnet.tag': 10,
  'proxmox_storage_content.content': 'iso',
  'proxmox_storage_content.volume': 'local:iso/debian.iso',
  'proxmox_guest_snapshot.type': 'vm',
  'proxmox_backup.type': 'vm',
  'proxmox_cluster.options': { keyboard: 'de' },
  'proxmox_guest_config_update.config': { onboot: 1 },
  'proxmox_guest_config_update.delete': 'tags',
  'proxmox_cluster_backup_job.options': { ionice: 7 },
  'proxmox_storage_config.settings': { port: 8007 },
  'proxmox_create_vm.options': { tablet: 0 },
  'proxmox_create_lxc.options': { tty: 2 },
  'proxmox_snapshot_create.type': 'vm',
  'proxmox_lxc_mountpoint.path': '/srv/data',
  'proxmox_cluster_config.fingerprint': Array(32).fill('AB').join(':'),
}

const BY_NAME: Record<string, unknown> = {
  node: 'pve1',
  target: 'pve2',
  source: 'pve1',
  vmid: 100,
  newid: 900,
  storage: 'local',
  volume: 'local:backup/vzdump-qemu-100-2026_01_01-00_00_00.vma.zst',
  archive: 'local:backup/vzdump-qemu-100-2026_01_01-00_00_00.vma.zst',
  upid: UPID,
  iface: 'vmbr1',
  'vlan-raw-device': 'eno1',
  timezone: 'Europe/Berlin',
  ip: '192.0.2.9',
  key: 'pve1c-0123456789',
  vms: '100,101',
  id: 'job1',
  disk: 'scsi0',
  uuid: '00000000-0000-0000-0000-000000000000',
  size: '8G',
  disk_size: '512M',
  rootfs: '8G',
  diskSize: '32G',
  net: 'net0',
  bridge: 'vmbr0',
  macaddr: 'BC:24:11:00:00:02',
  snapname: 'before',
  snapshot: 'before',
  name: 'thing',
  hostname: 'box',
  iso: 'local:iso/debian.iso',
  ostemplate: 'local:vztmpl/debian.tar.zst',
  ostype: 'l26',
  scsihw: 'virtio-scsi-pci',
  options: 'ssd=1',
  mp: 'mp0',
  path: '/vms/100',
  digest: 'ab12',
  delete: 'comment',
  feature: 'snapshot',
  group: 'ops',
  rename: 'ops2',
  rule_action: 'ACCEPT',
  macro: 'SSH',
  cidr: '10.0.0.0/24',
  starttime: '02:00',
  sid: 'vm:100',
  rule: 'rule1',
  userid: 'agent@pve',
  tokenid: 'deputy',
  groupid: 'ops',
  roleid: 'Agents',
  realm: 'corp',
  poolid: 'web',
  dev: '/dev/sdc',
  dbdev: '/dev/sdd',
  waldev: '/dev/sde',
  monid: 'pve1',
  zone: 'zone1',
  vnet: 'vnet1',
  subnet: '10.0.0.0/24',
  controller: 'ctl1',
  service: 'pveproxy',
  url: 'https://example.org/debian.iso',
  checksum: 'abcd',
  filename: 'debian.iso',
  content: 'text',
  directory: 'https://acme.example/directory',
  since: '2026-01-01',
  until: '2026-01-02 10:00',
  command: 'uptime',
  username: 'root',
  key_: 'x',
  iface_: 'x',
  privs: 'VM.Audit',
  roles: 'PVEAuditor',
  users: 'agent@pve',
  groups: 'ops',
  fields: '',
  filter: '',
  cursor: '',
  'icmp-type': 'echo-request',
  'with-local-storage': 'local',
  package: 'pve-manager',
  typefilter: 'qmstart',
  filepath: '/etc/hosts',
  file: '/etc/hosts',
  from: 'pve@example.org',
  server: 'mail.example.org',
  args: ['-c', 'id'],
  crush_rule: 'replicated_rule',
  'crush-device-class': 'ssd',
  exclude: '101',
  fingerprint: 'AB:CD',
  'mon-address': '192.0.2.1',
  storage_: 'x',
  tags: 'web',
  transport: 'api',
  confirm: true,
  wait: 5,
  points: 5,
  limit: 10,
  timeout: 2,
}

export const sampleArgs = (tool: Tool, action: string, names: readonly string[]): Record<string, unknown> => {
  const args: Record<string, unknown> = action === '' ? {} : { action }
  for (const name of names) {
    const value = BY_TOOL[`${tool.name} ${action}.${name}`] ?? sample(tool.name, name, tool.params[name]!)
    if (value !== '') args[name] = value
  }
  return args
}

const sample = (tool: string, name: string, param: Param): unknown => {
  const own = BY_TOOL[`${tool}.${name}`]
  if (own !== undefined) return own
  if (param.values) return param.values[0]
  if (param.type === 'boolean') return true
  if (param.type === 'strings') return [BY_NAME[name] ?? 'x'].flat()
  const named = BY_NAME[name]
  if (param.type === 'integer' || param.type === 'number')
    return typeof named === 'number' ? named : Math.max(param.min ?? 1, 1)
  return named ?? 'x'
}

/** What an action needs beside its required parameters, depending on another of them. */
export const leastNames = (tool: Tool, action: string, row: Row): string[] => [
  ...row.required,
  ...(ALSO[`${tool.name} ${action}`.trim()] ?? changesOf(action, row).slice(0, 1)),
]

const ALSO: Record<string, readonly string[]> = {
  proxmox_guest_config_update: ['config'],
  proxmox_guest_resize: ['memory'],
  'proxmox_user update': ['comment'],
  'proxmox_group update': ['comment'],
  'proxmox_notification create': ['server', 'from'],
}

/** Combinations that are for one kind of thing only, left out when everything is given at once. */
export const allNames = (tool: Tool, action: string, row: Row): string[] => {
  const skipped = EXCLUSIVE[`${tool.name} ${action}`.trim()] ?? []
  return [...row.required, ...row.optional].filter(name => !skipped.includes(name))
}

const EXCLUSIVE: Record<string, readonly string[]> = {
  proxmox_guest_resize: ['swap'],
  proxmox_guest_clone: ['hostname'],
  'proxmox_guest_network add': ['ip', 'gw', 'ip6', 'gw6'],
  'proxmox_guest_network update': ['ip', 'gw', 'ip6', 'gw6'],
  'proxmox_notification create': ['token', 'url', 'method', 'header', 'body', 'secret'],
  'proxmox_notification update': ['token', 'url', 'method', 'header', 'body', 'secret'],
  'proxmox_node_network_iface apply': ['revert'],
}
