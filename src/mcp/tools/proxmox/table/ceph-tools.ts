import { osdTree } from '../composite/osd-tree.ts'
import { done, record, rows, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const { node, wait } = p
const POOL = 'pg_num size min_size crush_rule pg_autoscale_mode application target_size_ratio'

// biome-ignore format: it is a table
export const ceph: Toolset = {
  name: 'proxmox-ceph',
  about: 'Ceph: health, OSDs, monitors, metadata servers, pools, file systems.',
  tools: [
    tool('proxmox_ceph', 'Health of Ceph.', { node }, {
      status: read('GET /nodes/{node}/ceph/status', 'node*', record('health.status health.checks quorum_names osdmap.num_osds:int osdmap.num_up_osds:int osdmap.num_in_osds:int pgmap.num_pgs:int pgmap.pgs_by_state pgmap.bytes_used:gib pgmap.bytes_avail:gib pgmap.bytes_total:gib')),
    }),

    tool('proxmox_ceph_osd', 'OSDs.', {
      node, dev: p.text('e.g. /dev/nvme1n1', { pattern: /^\/dev\/[A-Za-z0-9_/+-]+$/ }), id: p.int(0, 100_000, undefined, { api: 'osdid' }),
      dbdev: p.text('device for the DB', { api: 'db_dev', pattern: /^\/dev\/[A-Za-z0-9_/+-]+$/ }),
      waldev: p.text('device for the WAL', { api: 'wal_dev', pattern: /^\/dev\/[A-Za-z0-9_/+-]+$/ }),
      'crush-device-class': p.name(), encrypted: p.bool(), cleanup: p.bool('wipe the disk too'), wait,
    }, {
      list: read('GET /nodes/{node}/ceph/osd', 'node*', rows('id:int name host type status in:bool device_class percent_used:num total_space:gib bytes_used:gib crush_weight:num pgs:int', osdTree)),
      create: destructive('POST /nodes/{node}/ceph/osd', 'node* dev* dbdev waldev crush-device-class encrypted wait', task,
        { note: 'Formats the device. Proxmox allows it to root@pam with a password only, never to an API token.' }),
      delete: destructive('DELETE /nodes/{node}/ceph/osd/{id}', 'node* id* cleanup wait', task,
        { note: 'The OSD must be out and stopped. root@pam with a password only.' }),
      in: elevated('POST /nodes/{node}/ceph/osd/{id}/in', 'node* id*', done),
      out: elevated('POST /nodes/{node}/ceph/osd/{id}/out', 'node* id*', done),
    }),

    tool('proxmox_ceph_mon', 'Monitors.', { node, monid: p.name(), 'mon-address': p.text(), wait }, {
      list: read('GET /nodes/{node}/ceph/mon', 'node*', rows('name host addr quorum:bool state ceph_version_short')),
      create: elevated('POST /nodes/{node}/ceph/mon/{monid}', 'node* monid* mon-address wait', task),
      delete: destructive('DELETE /nodes/{node}/ceph/mon/{monid}', 'node* monid* wait', task),
    }),

    tool('proxmox_ceph_mds', 'Metadata servers.', { node, name: p.name(), hotstandby: p.bool(), wait }, {
      list: read('GET /nodes/{node}/ceph/mds', 'node*', rows('name host addr state rank:int fs_name')),
      create: elevated('POST /nodes/{node}/ceph/mds/{name}', 'node* name* hotstandby wait', task),
      delete: destructive('DELETE /nodes/{node}/ceph/mds/{name}', 'node* name* wait', task),
    }),

    tool('proxmox_ceph_pool', 'Pools.', {
      node, name: p.name(), pg_num: p.int(1, 32_768), size: p.int(1, 7, 'replicas'), min_size: p.int(1, 7), crush_rule: p.name(),
      pg_autoscale_mode: p.oneOf('on|off|warn'),
      application: p.oneOf('rbd|cephfs|rgw'), target_size_ratio: p.num(0, 1000), add_storages: p.bool('define a storage for it'),
      remove_storages: p.bool(), force: p.bool('even if in use'), wait,
    }, {
      list: read('GET /nodes/{node}/ceph/pool', 'node*', rows('pool_name size:int min_size:int pg_num:int pg_autoscale_mode crush_rule_name percent_used:pct bytes_used:gib type')),
      create: elevated('POST /nodes/{node}/ceph/pool', `node* name* ${POOL} add_storages wait`, task),
      update: elevated('PUT /nodes/{node}/ceph/pool/{name}', `node* name* ${POOL} wait`, task),
      delete: destructive('DELETE /nodes/{node}/ceph/pool/{name}', 'node* name* force remove_storages wait', task),
    }),

    tool('proxmox_ceph_fs', 'CephFS. Its pools are made with it: NAME_data and NAME_metadata.', { node, name: p.name('default cephfs'), pg_num: p.int(8, 32_768), 'add-storage': p.bool(), wait }, {
      list: read('GET /nodes/{node}/ceph/fs', 'node*', rows('name data_pool metadata_pool')),
      create: elevated('POST /nodes/{node}/ceph/fs/{name}', 'node* name* pg_num add-storage wait', task),
    }),
  ],
}
