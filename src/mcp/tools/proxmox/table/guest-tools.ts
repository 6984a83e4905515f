import { createLxc, createVm } from '../composite/create-guest.ts'
import { cloneGuest, listGuests, migrate, updateConfig } from '../composite/guest-actions.ts'
import { addDisk, addMountpoint, moveDisk, removeDisk, removeMountpoint } from '../composite/guest-disk.ts'
import { addNetwork, removeNetwork, updateNetwork } from '../composite/guest-network.ts'
import { done, longText, record, rows, series, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'
import { FIREWALL_RULE, firewallRule, RULE_COLUMNS } from './firewall-tools.ts'

const { vmid, wait } = p
const guest = { vmid, node: p.node, type: p.guestType }
const qemu = { vmid, node: p.node }
const AT = 'vmid* node type'

const GUEST_COLUMNS =
  'vmid:int type name status node cpu:pct maxcpu:int mem:gib maxmem:gib uptime:s pool tags template:bool lock'
const GUEST_SERIES =
  'time:time cpu:pct maxcpu:num mem:gib maxmem:gib disk:gib maxdisk:gib netin:num netout:num diskread:num diskwrite:num pressurecpusome:num pressureiosome:num pressurememorysome:num'
const STATUS_COLUMNS =
  'vmid:int name status qmpstatus lock uptime:s cpu:pct cpus:num mem:gib maxmem:gib disk:gib maxdisk:gib netin:mib netout:mib diskread:mib diskwrite:mib pid:int tags template:bool ha agent:bool running-qemu running-machine'
const size = p.text('e.g. 32G, 512M, 1.5T; bare number = GiB', { pattern: /^\d+(\.\d+)?\s*[KMGT]?(i?B)?$/i })
const net = p.text('e.g. net0', { pattern: /^net([0-9]|[12][0-9]|3[01])$/ })
const bridge = p.text('bridge or SDN vnet', { pattern: /^[A-Za-z][A-Za-z0-9_.-]{0,15}$/ })
const DNS = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/
const NET = 'model macaddr vlan ip gw ip6 gw6 firewall rate mtu link_down'

// biome-ignore format: it is a table
export const guests: Toolset = {
  name: 'proxmox-guests',
  about: 'Virtual machines and containers: list, state, configuration, power, clone, migrate, snapshots, disks, network, creation.',
  tools: [
    tool('proxmox_guest_list', 'VMs and containers of the whole cluster.', {
      node: p.node, type: p.oneOf('qemu|lxc|all'), ...p.paging,
    }, read('GET /cluster/resources', `node type ${p.PAGED}`, rows(GUEST_COLUMNS), { run: listGuests })),

    tool('proxmox_guest_status', 'Present state of a guest.', guest,
      read('GET /nodes/{node}/{type}/{vmid}/status/current', AT, record(STATUS_COLUMNS))),

    tool('proxmox_guest_config', 'Whole configuration of a guest.', { ...guest, current: p.bool('without pending changes'), snapshot: p.snapname },
      read('GET /nodes/{node}/{type}/{vmid}/config', `${AT} current snapshot`, record())),

    tool('proxmox_guest_pending', 'Configuration with changes that wait for a restart.', guest,
      read('GET /nodes/{node}/{type}/{vmid}/pending', AT, rows('key value pending delete:int'))),

    tool('proxmox_guest_feature', 'Whether a guest can be snapshot, cloned or copied.', { ...guest, feature: p.oneOf('snapshot|clone|copy'), snapname: p.snapname },
      read('GET /nodes/{node}/{type}/{vmid}/feature', `${AT} feature* snapname`, record('hasFeature:bool nodes'))),

    tool('proxmox_guest_rrddata', 'Metrics of a guest over time, newest last.', { ...guest, timeframe: p.timeframe, cf: p.cf, points: p.int(1, 70, 'newest points, default 12', { local: true }) },
      read('GET /nodes/{node}/{type}/{vmid}/rrddata', `${AT} timeframe cf points`, series(GUEST_SERIES), { preset: { timeframe: 'hour' } })),

    tool('proxmox_guest_start', 'Start a guest.', { ...guest, wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/status/start', `${AT} wait`, task)),

    tool('proxmox_guest_stop', 'Power a guest off at once, like pulling the plug.', { ...guest, 'overrule-shutdown': p.bool('abort a shutdown in progress'), wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/status/stop', `${AT} overrule-shutdown wait`, task)),

    tool('proxmox_guest_reboot', 'Shut a guest down cleanly and start it again.', { ...guest, timeout: p.int(0, 3600, 'seconds'), wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/status/reboot', `${AT} timeout wait`, task)),

    tool('proxmox_guest_shutdown', 'Shut a guest down cleanly.', { ...guest, timeout: p.int(0, 3600, 'seconds'), forceStop: p.bool('power off at the timeout'), wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/status/shutdown', `${AT} timeout forceStop wait`, task)),

    tool('proxmox_guest_delete', 'Destroy a stopped guest and its disks.', { ...guest, purge: p.bool('also from backup, replication and HA jobs'), 'destroy-unreferenced-disks': p.bool(), wait },
      destructive('DELETE /nodes/{node}/{type}/{vmid}', `${AT} purge destroy-unreferenced-disks wait`, task)),

    tool('proxmox_guest_pause', 'Pause a guest; `todisk` hibernates a VM.', { ...guest, todisk: p.bool('VM only', { only: 'vm' }), wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/status/suspend', `${AT} todisk wait`, task)),

    tool('proxmox_guest_resume', 'Resume a paused guest.', { ...guest, wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/status/resume', `${AT} wait`, task)),

    tool('proxmox_guest_clone', 'Clone a guest or template. Linked clone by default for templates; storage and format need full.', {
      ...guest, newid: p.newid,
      name: p.text('VM name', { pattern: DNS }), hostname: p.text('container name', { pattern: DNS }),
      target: p.target, full: p.bool(), storage: p.storage, format: p.oneOf('raw|qcow2|vmdk'),
      snapname: p.snapname, pool: p.text(), description: p.text(), wait,
    }, elevated('POST /nodes/{node}/{type}/{vmid}/clone', `${AT} newid* name hostname target full storage format snapname pool description wait`, task, { run: cloneGuest })),

    tool('proxmox_guest_resize', 'Memory and cores of a guest.', { ...guest, memory: p.int(16, 4_194_304, 'MiB'), cores: p.int(1, 8192), sockets: p.int(1, 64, 'VM only', { only: 'vm' }), swap: p.int(0, 4_194_304, 'MiB, container only', { only: 'lxc' }) },
      elevated('PUT /nodes/{node}/{type}/{vmid}/config', `${AT} memory cores sockets swap`, done, { run: updateConfig })),

    tool('proxmox_guest_config_update', 'Set or unset any configuration key.', { ...guest, config: p.spread('e.g. {"onboot":1,"tags":"web"}'), delete: p.unset, digest: p.digest },
      elevated('PUT /nodes/{node}/{type}/{vmid}/config', `${AT} config delete digest`, done, { run: updateConfig, worst: 'destructive', note: 'Deleting an unused disk, or with force, destroys its volume.' })),

    tool('proxmox_guest_migrate', 'Move a guest to another node.', {
      ...guest, target: p.target,
      online: p.bool('while running; a container is restarted'), force: p.bool('VM with local devices; root only'),
      bwlimit: p.int(0, 100_000_000, 'KiB/s'), 'with-local-disks': p.bool('VM', { only: 'vm' }),
      'with-local-storage': p.text('storage at the target', { pattern: p.storage.pattern! }), wait,
    }, elevated('POST /nodes/{node}/{type}/{vmid}/migrate', `${AT} target* online force bwlimit with-local-disks with-local-storage wait`, task, { run: migrate })),

    tool('proxmox_guest_template', 'Turn a guest into a template. There is no way back.', { ...guest, wait },
      elevated('POST /nodes/{node}/{type}/{vmid}/template', `${AT} wait`, task)),

    tool('proxmox_guest_snapshot', 'Snapshots of a guest.', {
      ...guest, snapname: p.snapname, description: p.text(), vmstate: p.bool('VM: with memory', { only: 'vm' }),
      start: p.bool('start afterwards'), force: p.bool('remove from the configuration even if the disks fail'), wait,
    }, {
      create: elevated('POST /nodes/{node}/{type}/{vmid}/snapshot', `${AT} snapname* description vmstate wait`, task),
      list: read('GET /nodes/{node}/{type}/{vmid}/snapshot', AT, rows('name parent snaptime:time vmstate:bool description')),
      rollback: destructive('POST /nodes/{node}/{type}/{vmid}/snapshot/{snapname}/rollback', `${AT} snapname* start wait`, task),
      delete: destructive('DELETE /nodes/{node}/{type}/{vmid}/snapshot/{snapname}', `${AT} snapname* force wait`, task),
      update: elevated('PUT /nodes/{node}/{type}/{vmid}/snapshot/{snapname}/config', `${AT} snapname* description`, done),
    }),

    tool('proxmox_guest_firewall_rule', 'Firewall rules of a guest. They work only if the firewall is on for cluster, guest and NIC.', {
      ...guest, ...firewallRule('rule_type'),
    }, {
      list: read('GET /nodes/{node}/{type}/{vmid}/firewall/rules', AT, rows(RULE_COLUMNS)),
      get: read('GET /nodes/{node}/{type}/{vmid}/firewall/rules/{pos}', `${AT} pos*`, record(RULE_COLUMNS)),
      create: elevated('POST /nodes/{node}/{type}/{vmid}/firewall/rules', `${AT} rule_action* rule_type* pos ${FIREWALL_RULE}`, done),
      update: elevated('PUT /nodes/{node}/{type}/{vmid}/firewall/rules/{pos}', `${AT} pos* rule_action rule_type moveto delete digest ${FIREWALL_RULE}`, done),
      delete: destructive('DELETE /nodes/{node}/{type}/{vmid}/firewall/rules/{pos}', `${AT} pos* digest`, done),
    }),

    tool('proxmox_guest_disk_resize', 'Grow a disk; it cannot shrink.', { ...guest, disk: p.disk, size: p.text('+5G adds, 20G sets', { pattern: /^\+?\d+(\.\d+)?[KMGT]?$/ }), digest: p.digest, wait },
      elevated('PUT /nodes/{node}/{type}/{vmid}/resize', `${AT} disk* size* digest wait`, task)),

    tool('proxmox_guest_disk_move', 'Move a disk to another storage.', { ...guest, disk: p.disk, storage: p.storage, delete: p.bool('drop the source, default true'), format: p.oneOf('raw|qcow2|vmdk'), bwlimit: p.int(0, 100_000_000, 'KiB/s'), wait },
      elevated('POST /nodes/{node}/qemu/{vmid}/move_disk', `${AT} disk* storage* delete format bwlimit wait`, task, { run: moveDisk })),

    tool('proxmox_guest_network', 'Network interfaces of a guest; an update keeps the MAC and all it does not name.', {
      ...guest, net, bridge,
      model: p.oneOf('virtio|e1000|e1000e|rtl8139|vmxnet3', 'VM'), macaddr: p.text(undefined, { pattern: /^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$/ }),
      vlan: p.int(1, 4094), ip: p.text('container: CIDR, dhcp or manual'), gw: p.text(), ip6: p.text(), gw6: p.text(),
      firewall: p.bool(), rate: p.num(0, 100_000, 'MB/s'), mtu: p.int(1, 65520), link_down: p.bool(),
    }, {
      add: elevated('PUT /nodes/{node}/{type}/{vmid}/config', `${AT} net* bridge* ${NET}`, record(), { run: addNetwork }),
      update: elevated('PUT /nodes/{node}/{type}/{vmid}/config', `${AT} net* bridge ${NET}`, record(), { run: updateNetwork }),
      remove: elevated('PUT /nodes/{node}/{type}/{vmid}/config', `${AT} net*`, done, { run: removeNetwork }),
    }),

    tool('proxmox_create_vm', 'Create a virtual machine.', {
      node: p.node, vmid: p.int(100, 999_999_999, 'next free id if omitted'), name: p.text(undefined, { pattern: DNS }),
      memory: p.int(16, 4_194_304, 'MiB, default 512'), cores: p.int(1, 8192), sockets: p.int(1, 64),
      disk_size: size, storage: p.storage, iso: p.volume, ostype: p.text('default l26', { pattern: /^[a-z0-9]+$/ }),
      net0: p.text('default virtio,bridge=vmbr0'),
      start: p.bool(), options: p.spread('any other, e.g. {"agent":"1","tags":"web"}'), wait,
    }, elevated('POST /nodes/{node}/qemu', 'node* vmid name memory cores sockets disk_size storage iso ostype net0 start options wait', task, { run: createVm })),

    tool('proxmox_create_lxc', 'Create a container. A password is made and kept in a file unless one or SSH keys are given.', {
      node: p.node, vmid: p.int(100, 999_999_999, 'next free id if omitted'), ostemplate: p.volume, hostname: p.text(undefined, { pattern: DNS }),
      password: p.secret(), 'ssh-public-keys': p.text(), memory: p.int(16, 4_194_304, 'MiB, default 512'), cores: p.int(1, 8192),
      storage: p.storage, rootfs: size, net0: p.text('e.g. name=eth0,bridge=vmbr0,ip=dhcp'), unprivileged: p.bool('default true'),
      start: p.bool(), options: p.spread('any other, e.g. {"features":"nesting=1"}'), wait,
    }, elevated('POST /nodes/{node}/lxc', 'node* vmid ostemplate* hostname password ssh-public-keys memory cores storage rootfs net0 unprivileged start options wait', task, { run: createLxc })),

    tool('proxmox_vm_disk', 'Disks of a VM.', { ...qemu, disk: p.disk, storage: p.storage, size, options: p.text('e.g. ssd=1,discard=on', { pattern: /^[A-Za-z0-9_=.,+-]*$/ }), force: p.bool('delete the volume too'), wait }, {
      add: elevated('POST /nodes/{node}/qemu/{vmid}/config', 'vmid* node disk* storage* size* options wait', task, { run: addDisk }),
      remove: elevated('PUT /nodes/{node}/qemu/{vmid}/unlink', 'vmid* node disk* force', record(),
        { run: removeDisk, worst: 'destructive', note: 'Detaches; the volume stays as unusedN unless `force`, which is destructive.' }),
    }),

    tool('proxmox_lxc_mountpoint', 'Mount points of a container.', {
      ...qemu, mp: p.text('e.g. mp0', { pattern: /^mp\d{1,3}$/ }), storage: p.storage, size,
      path: p.text('where it is mounted', { pattern: /^\/[^,\0]*$/ }), backup: p.bool('include in backups'), ro: p.bool(),
    }, {
      add: elevated('PUT /nodes/{node}/lxc/{vmid}/config', 'vmid* node mp* storage* size* path* backup ro', record(), { run: addMountpoint }),
      remove: elevated('PUT /nodes/{node}/lxc/{vmid}/config', 'vmid* node mp*', done, { run: removeMountpoint, note: 'Detaches; the volume stays as unusedN.' }),
    }),

    tool('proxmox_cloudinit', 'Cloud-init of a VM.', { ...qemu, dump_type: p.oneOf('user|network|meta', undefined, { api: 'type' }) }, {
      get: read('GET /nodes/{node}/qemu/{vmid}/cloudinit', 'vmid* node', rows('key old new delete:int')),
      dump: read('GET /nodes/{node}/qemu/{vmid}/cloudinit/dump', 'vmid* node dump_type*', longText),
      regenerate: elevated('PUT /nodes/{node}/qemu/{vmid}/cloudinit', 'vmid* node', done),
    }),
  ],
}
