import { aliases } from '../dist/mcp/tools/proxmox/aliases.js'
import { annotationsOf } from '../dist/mcp/tools/proxmox/mcp-tool.js'
import { TABLE } from '../dist/mcp/tools/proxmox/table/toolset-table.js'

/** How Claude Code calls the tools of the server that the plugin brings along. */
const PREFIX = 'mcp__plugin_deputy_deputy__'

const LOOK = ['use_toolset', 'list_nodes', 'get_cluster_resources']

const toolset = name => TABLE.find(one => one.name === `proxmox-${name}`).tools.map(tool => tool.name)
const tool = name => `proxmox_${name}`

const vm = ['create_vm', 'vm_disk', 'cloudinit'].map(tool)
const lxc = ['create_lxc', 'lxc_mountpoint', 'lxc_exec'].map(tool)
const without = (names, unwanted) => names.filter(name => !unwanted.includes(name))

/** Only what cannot change anything, whatever it is asked. */
const readers = () =>
  TABLE.filter(({ name }) => name !== aliases.name)
    .flatMap(({ tools }) => tools)
    .filter(one => annotationsOf(one).readOnlyHint)
    .map(one => one.name)

const TOOLS = {
  'vm-manager': [
    ...LOOK,
    ...without(toolset('guests'), lxc),
    ...without(toolset('agent'), lxc),
    ...toolset('backup'),
    ...toolset('console'),
    ...['get_next_vmid', 'storage_content', 'node_task'].map(tool),
  ],
  'lxc-manager': [
    ...LOOK,
    ...without(toolset('guests'), vm),
    ...toolset('backup'),
    ...[
      'lxc_exec',
      'console_term',
      'console_vnc',
      'get_next_vmid',
      'storage_content',
      'node_info',
      'node_task',
    ].map(tool),
  ],
  'cluster-admin': [
    ...LOOK,
    tool('guest_migrate'),
    ...without(toolset('nodes'), ['node_disk_admin', 'node_network_iface'].map(tool)),
    ...toolset('cluster'),
    ...toolset('ha'),
    ...toolset('certs'),
    ...toolset('notify'),
    ...['guest_list', 'guest_status'].map(tool),
  ],
  'storage-admin': [
    ...LOOK,
    ...toolset('storage'),
    ...toolset('ceph'),
    ...toolset('backup'),
    ...[
      'cluster_backup_job',
      'cluster_replication_job',
      'node_replication',
      'node_disk',
      'node_disk_admin',
      'node_task',
      'guest_disk_move',
      'guest_disk_resize',
    ].map(tool),
  ],
  'network-admin': [
    ...LOOK,
    ...toolset('firewall'),
    ...toolset('sdn'),
    ...['node', 'node_network_iface', 'node_config', 'node_task', 'guest_network', 'guest_firewall_rule'].map(
      tool,
    ),
  ],
  'access-admin': [...LOOK, ...toolset('access')],
  monitor: [...LOOK, 'proxmox_api_search', 'proxmox_api_describe', ...readers()],
}

export const SUBAGENTS = Object.keys(TOOLS)

/** The page of a subagent with the tools it may use, and no others, in its head. */
export const withTools = (name, page) => {
  const tools = TOOLS[name].map(one => PREFIX + one).join(', ')
  const [, head, body] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(page)
  const lines = head.split('\n').filter(line => !line.startsWith('tools:'))
  const at = lines.findIndex(line => line.startsWith('model:'))
  lines.splice(at < 0 ? lines.length : at, 0, `tools: ${tools}`)
  return `---\n${lines.join('\n')}\n---\n${body}`
}
