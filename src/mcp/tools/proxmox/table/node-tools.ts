import { aptUpgrade, aptVersions } from '../composite/apt.ts'
import { journal, replicationLog, syslog } from '../composite/journal.ts'
import { getHosts, setDns, setHosts } from '../composite/node-config.ts'
import { diskTree } from '../composite/node-disk.ts'
import { applyNetwork, updateIface } from '../composite/node-network.ts'
import { abortTask, listTasks, taskLog, taskReport, waitForTask } from '../composite/node-task.ts'
import { done, lines, longText, record, rows, series, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const { node, wait } = p
const NODE_FIELDS = 'node status cpu:pct maxcpu:int mem:gib maxmem:gib disk:gib maxdisk:gib uptime:s'
const NODE_SERIES =
  'time:time cpu:pct iowait:pct loadavg:num memused:gib memtotal:gib swapused:gib rootused:gib netin:num netout:num pressurecpusome:num pressureiosome:num pressurememorysome:num'
const IFACE =
  'autostart address netmask gateway cidr cidr6 gateway6 mtu comment bridge_ports bridge_vlan_aware bridge_vids bond_mode bond_xmit_hash_policy bond_primary bond_slaves vlan-id vlan-raw-device'
const vms = p.text('VMIDs, comma separated; default all', { pattern: /^\d{3,9}([,; ]\d{3,9})*$/ })
const workers = p.int(1, 64, undefined, { api: 'max-workers' })

// biome-ignore format: it is a table
export const nodes: Toolset = {
  name: 'proxmox-nodes',
  about: 'Nodes: state, services, logs, tasks, time, DNS, network, disks, updates, power.',
  tools: [
    tool('proxmox_node', 'Nodes, their state and network settings.', {
      node,
      iface: p.iface,
      type: p.oneOf('bridge|bond|eth|alias|vlan|OVSBridge|OVSBond|OVSPort|OVSIntPort|vnet|any_bridge|any_local_bridge|include_sdn'),
    }, {
      list: read('GET /nodes', '', rows(NODE_FIELDS)),
      status: read('GET /nodes/{node}/status', 'node*', record('pveversion kversion uptime:s cpu:pct wait:pct loadavg cpuinfo.model cpuinfo.cpus:int cpuinfo.sockets:int memory.used:gib memory.total:gib swap.used:gib swap.total:gib rootfs.used:gib rootfs.total:gib ksm.shared:gib boot-info.mode')),
      network: read('GET /nodes/{node}/network', 'node* type', rows('iface type method cidr cidr6 gateway active:bool autostart:bool bridge_ports slaves bond_mode vlan-id:int mtu:int comments')),
      dns: read('GET /nodes/{node}/dns', 'node*', record()),
      iface: read('GET /nodes/{node}/network/{iface}', 'node* iface*', record()),
    }),

    tool('proxmox_node_service', 'System services of a node.', {
      node,
      service: p.name('e.g. pveproxy, sshd'),
      command: p.oneOf('start|stop|restart|reload'),
      wait,
    }, {
      list: read('GET /nodes/{node}/services', 'node*', rows('service name state active-state unit-state desc')),
      status: read('GET /nodes/{node}/services/{service}/state', 'node* service*', record()),
      control: elevated('POST /nodes/{node}/services/{service}/{command}', 'node* service* command* wait', task),
    }),

    tool('proxmox_node_log', 'Log of a node, newest lines.', {
      node,
      limit: p.int(1, 500, 'lines, default 100'),
      service: p.name('unit'),
      since: p.text('YYYY-MM-DD [HH:MM], syslog only', { pattern: /^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?$/ }),
      until: p.text('as since', { pattern: /^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?$/ }),
    }, {
      syslog: read('GET /nodes/{node}/syslog', 'node* limit service since until', lines, { run: syslog }),
      journal: read('GET /nodes/{node}/journal', 'node* limit', lines, { run: journal }),
    }),

    tool('proxmox_node_task', 'Tasks (UPIDs) of a node: outcome, log, waiting.', {
      node: p.text('taken from upid if omitted', { pattern: node.pattern!, maxLength: 63 }),
      upid: p.upid,
      errors: p.bool('only failed ones'),
      vmid: p.vmid,
      typefilter: p.name('task type, e.g. qmclone'),
      source: p.oneOf('archive|active|all'),
      timeout: p.int(1, 50, 'seconds, default 45', { local: true }),
      ...p.paging,
    }, {
      list: read('GET /nodes/{node}/tasks', `node* errors vmid typefilter source ${p.PAGED}`, rows('upid type id user starttime:time endtime:time status'),
        { run: listTasks }),
      get: read('GET /nodes/{node}/tasks/{upid}/status', 'upid* node', record(), { run: taskReport }),
      log: read('GET /nodes/{node}/tasks/{upid}/log', 'upid* node limit', lines, { run: taskLog }),
      wait: read('GET /nodes/{node}/tasks/{upid}/status', 'upid* node timeout', record(), { run: waitForTask }),
      stop: elevated('DELETE /nodes/{node}/tasks/{upid}', 'upid* node', done, { run: abortTask, note: 'Aborts the running task.' }),
    }),

    tool('proxmox_node_info', 'Templates on offer, traffic, metrics and report of a node.', {
      node,
      storage: p.storage,
      timeframe: p.oneOf('hour|day|week|month|year|decade', 'default hour'),
      cf: p.cf,
      points: p.int(1, 70, 'newest points, default 12', { local: true }),
      ...p.paging,
    }, {
      aplinfo: read('GET /nodes/{node}/aplinfo', `node* ${p.PAGED}`, rows('template section os version headline')),
      netstat: read('GET /nodes/{node}/netstat', 'node*', rows('vmid:int dev in:mib out:mib')),
      rrddata: read('GET /nodes/{node}/rrddata', 'node* timeframe cf points', series(NODE_SERIES), { preset: { timeframe: 'hour' } }),
      storage_rrddata: read('GET /nodes/{node}/storage/{storage}/rrddata', 'node* storage* timeframe cf points', series('time:time used:gib total:gib'),
        { preset: { timeframe: 'hour' } }),
      report: read('GET /nodes/{node}/report', 'node*', longText),
    }),

    tool('proxmox_node_config', 'Time zone, DNS and /etc/hosts of a node.', {
      node,
      timezone: p.text('e.g. Europe/Berlin', { pattern: /^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/ }),
      search: p.text('search domain, default keeps the present one'),
      dns1: p.text(), dns2: p.text(), dns3: p.text(),
      ip: p.text('address of the hosts line', { pattern: /^[0-9A-Fa-f.:]{2,45}$/ }),
      name: p.text('names for it, space separated', { pattern: /^[A-Za-z0-9._-]+( [A-Za-z0-9._-]+)*$/ }),
      comment: p.text(undefined, { pattern: /^[^\r\n]*$/, maxLength: 200 }),
      digest: p.digest,
    }, {
      get_time: read('GET /nodes/{node}/time', 'node*', record('timezone time:time localtime:int')),
      set_time: elevated('PUT /nodes/{node}/time', 'node* timezone*', done, { note: 'The clock itself is chrony\'s; the API sets the zone only.' }),
      set_dns: elevated('PUT /nodes/{node}/dns', 'node* search dns1 dns2 dns3', done, { run: setDns }),
      get_hosts: read('GET /nodes/{node}/hosts', 'node*', rows('ip names comment'), { run: getHosts }),
      set_hosts: elevated('POST /nodes/{node}/hosts', 'node* ip* name* comment digest', record(),
        { run: setHosts, note: 'Replaces the line of this address, or adds one; keeps the rest of the file. Comments get lines of their own: Proxmox VE takes no others.' }),
    }),

    tool('proxmox_node_subscription', 'Subscription of a node.', {
      node,
      key: p.secret('subscription key', { pattern: /^\s*pve([1248])([cbsp])-[0-9a-f]{10}\s*$/ }),
      force: p.bool('check even if fresh'),
    }, {
      get: read('GET /nodes/{node}/subscription', 'node*', record('status level productname regdate nextduedate sockets:int message')),
      set: elevated('PUT /nodes/{node}/subscription', 'node* key*', done),
      check: elevated('POST /nodes/{node}/subscription', 'node* force', done),
      delete: destructive('DELETE /nodes/{node}/subscription', 'node*', done),
    }),

    tool('proxmox_apt', 'Packages of a node. The API cannot install upgrades; `upgrade` lists them and says how.', {
      node,
      package: p.name('only this one', { local: true }),
      wait,
      ...p.paging,
    }, {
      update: elevated('POST /nodes/{node}/apt/update', 'node* wait', task, { note: 'Refreshes the package index.' }),
      upgrade: read('GET /nodes/{node}/apt/update', 'node*', record(),
        { run: aptUpgrade, note: 'Proxmox has no API to install packages: answers what is pending and the command to run.' }),
      versions: read('GET /nodes/{node}/apt/versions', `node* package ${p.PAGED}`, rows('Package OldVersion Version CurrentState ManagerVersion'), { run: aptVersions }),
      repositories: read('GET /nodes/{node}/apt/repositories', 'node*', record('standard-repos errors infos')),
    }),

    tool('proxmox_node_power', 'Power of a node. All its guests go down with it.', { node }, {
      shutdown: destructive('POST /nodes/{node}/status', 'node*', done, { preset: { command: 'shutdown' } }),
      reboot: destructive('POST /nodes/{node}/status', 'node*', done, { preset: { command: 'reboot' } }),
      wakeonlan: elevated('POST /nodes/{node}/wakeonlan', 'node*', record()),
    }),

    tool('proxmox_node_bulk', 'Start, stop, suspend or migrate many guests of a node.', {
      node, target: p.target, vms, wait,
      maxworkers: workers,
      force: p.bool('start even if onboot is off'),
      'force-stop': p.bool('kill what does not shut down'),
      timeout: p.int(0, 7200, 'seconds per guest'),
      'with-local-disks': p.bool(),
    }, {
      start_all: elevated('POST /nodes/{node}/startall', 'node* vms force maxworkers wait', task),
      stop_all: destructive('POST /nodes/{node}/stopall', 'node* vms force-stop timeout maxworkers wait', task),
      suspend_all: destructive('POST /nodes/{node}/suspendall', 'node* vms maxworkers wait', task),
      migrate_all: destructive('POST /nodes/{node}/migrateall', 'node* target* vms maxworkers with-local-disks wait', task),
    }),

    tool('proxmox_node_replication', 'Replication jobs as a node runs them.', {
      node,
      id: p.text('job id, e.g. 100-0', { pattern: /^\d{3,9}-\d{1,9}$/ }),
      limit: p.int(1, 500, 'lines'),
    }, {
      list: read('GET /nodes/{node}/replication', 'node*', rows('id guest:int target schedule last_sync:time next_sync:time duration:s fail_count:int error')),
      status: read('GET /nodes/{node}/replication/{id}/status', 'node* id*', record('id guest:int target schedule last_sync:time last_try:time next_sync:time duration:s fail_count:int error')),
      log: read('GET /nodes/{node}/replication/{id}/log', 'node* id* limit', lines, { run: replicationLog }),
      schedule: elevated('POST /nodes/{node}/replication/{id}/schedule_now', 'node* id*', done, { note: 'Runs it as soon as possible.' }),
    }),

    tool('proxmox_node_network_iface', 'Network interfaces of a node. Changes wait until `apply`; `revert` drops them.', {
      node,
      iface: p.iface,
      type: p.oneOf('bridge|bond|eth|alias|vlan|OVSBridge|OVSBond|OVSPort|OVSIntPort'),
      autostart: p.bool(),
      address: p.text(), netmask: p.text(), gateway: p.text(), cidr: p.text(), cidr6: p.text(), gateway6: p.text(),
      mtu: p.int(1280, 65520),
      comment: p.text(undefined, { api: 'comments' }),
      bridge_ports: p.text(),
      bridge_vlan_aware: p.bool(),
      bridge_vids: p.text(),
      bond_mode: p.oneOf('balance-rr|active-backup|balance-xor|broadcast|802.3ad|balance-tlb|balance-alb|balance-slb|lacp-balance-slb|lacp-balance-tcp'),
      bond_xmit_hash_policy: p.oneOf('layer2|layer2+3|layer3+4'),
      bond_primary: p.text(undefined, { api: 'bond-primary' }),
      bond_slaves: p.text(undefined, { api: 'slaves' }),
      'vlan-id': p.int(1, 4094),
      'vlan-raw-device': p.iface,
      delete: p.unset,
      revert: p.bool('drop pending changes instead'),
      wait,
    }, {
      create: elevated('POST /nodes/{node}/network', `node* iface* type* ${IFACE}`, done),
      update: elevated('PUT /nodes/{node}/network/{iface}', `node* iface* type ${IFACE} delete`, done,
        { run: updateIface, note: 'Keeps what is not named; Proxmox itself would demand the type.' }),
      delete: destructive('DELETE /nodes/{node}/network/{iface}', 'node* iface*', done),
      apply: elevated('PUT /nodes/{node}/network', 'node* revert wait', task, { run: applyNetwork }),
      revert: elevated('DELETE /nodes/{node}/network', 'node*', done),
    }),

    tool('proxmox_node_disk', 'Physical disks and what is on them.', {
      node,
      disk: p.text('e.g. /dev/sda', { pattern: /^\/dev\/[A-Za-z0-9_/+-]+$/ }),
      include_partitions: p.bool(undefined, { api: 'include-partitions' }),
      skip_smart: p.bool(undefined, { api: 'skipsmart' }),
      health_only: p.bool(undefined, { api: 'healthonly' }),
      type: p.oneOf('unused|journal_disks'),
    }, {
      list: read('GET /nodes/{node}/disks/list', 'node* include_partitions skip_smart type', rows('devpath type size:gib used model serial vendor wearout health gpt:bool osdid:int')),
      smart: read('GET /nodes/{node}/disks/smart', 'node* disk* health_only', record()),
      lvm: read('GET /nodes/{node}/disks/lvm', 'node*', rows('name kind size:gib free:gib', diskTree)),
      zfs: read('GET /nodes/{node}/disks/zfs', 'node*', rows('name health size:gib alloc:gib free:gib frag:int dedup:num')),
      lvmthin: read('GET /nodes/{node}/disks/lvmthin', 'node*', rows('lv vg lv_size:gib used:gib metadata_size:gib metadata_used:gib')),
      directory: read('GET /nodes/{node}/disks/directory', 'node*', rows('path device type options unitfile')),
    }),

    tool('proxmox_node_disk_admin', 'Erases disks. What is on the disk is lost.', {
      node,
      disk: p.text('e.g. /dev/sdb', { pattern: /^\/dev\/[A-Za-z0-9_/+-]+$/ }),
      uuid: p.text(undefined, { pattern: /^[0-9A-Fa-f-]{36}$/ }),
      wait,
    }, {
      init_gpt: destructive('POST /nodes/{node}/disks/initgpt', 'node* disk* uuid wait', task),
      wipe: destructive('PUT /nodes/{node}/disks/wipedisk', 'node* disk* wait', task,
        { note: 'Proxmox allows it to root@pam with a password only, never to an API token.' }),
    }),
  ],
}
