import { clusterNode, clusterStatus } from '../composite/cluster-actions.ts'
import { done, record, rows, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const jobId = p.name('job id')
const BACKUP_JOB =
  'schedule starttime dow storage all vmid pool exclude enabled comment mode compress node prune-backups notes-template notification-mode mailto mailnotification protected repeat-missed bwlimit options'
const replicationId = p.text('guest-number, e.g. 100-0', { pattern: /^\d{3,9}-\d{1,9}$/ })
const REPLICATION = 'comment disable rate remove_job schedule source'

// biome-ignore format: it is a table
export const cluster: Toolset = {
  name: 'proxmox-cluster',
  about: 'Cluster: quorum, options, scheduled backups, replication, membership.',
  tools: [
    tool('proxmox_cluster', 'Health (quorum, nodes) and options of the cluster.', { options: p.spread('e.g. {"keyboard":"de"}'), delete: p.unset }, {
      status: read('GET /cluster/status', '', record(), { run: clusterStatus }),
      options: read('GET /cluster/options', '', record()),
      update_options: elevated('PUT /cluster/options', 'options delete', done),
    }),

    tool('proxmox_cluster_health', 'Quorum, high availability and recent tasks. Changes nothing.', p.paging, {
      status: read('GET /cluster/status', '', record(), { run: clusterStatus }),
      ha: read('GET /cluster/ha/status/current', '', rows('id type node state status crm_state request_state quorate:bool timestamp:time')),
      tasks: read('GET /cluster/tasks', p.PAGED, rows('upid node type id user status starttime:time endtime:time')),
    }),

    tool('proxmox_get_next_vmid', 'Next free VMID. Nothing is reserved.', { vmid: p.int(100, 999_999_999, 'check this one') },
      read('GET /cluster/nextid', 'vmid', record('vmid:int', data => ({ vmid: data })))),

    tool('proxmox_cluster_backup_job', 'Scheduled backups. Give `schedule` (calendar event), or the older starttime and dow.', {
      id: jobId, schedule: p.text('e.g. sat 02:00, */6:00'), starttime: p.text('HH:MM', { pattern: /^\d{1,2}:\d{2}$/ }),
      dow: p.text('mon,tue,…', { pattern: /^[a-z]{3}(,[a-z]{3})*$/ }),
      storage: p.storage, all: p.bool(), vmid: p.text('VMIDs, comma separated', { pattern: /^\d{3,9}(,\d{3,9})*$/ }), pool: p.text(),
      exclude: p.text('VMIDs, comma separated', { pattern: /^\d{3,9}(,\d{3,9})*$/ }),
      enabled: p.bool(), comment: p.text(undefined, { maxLength: 512 }), mode: p.oneOf('snapshot|suspend|stop'),
      compress: p.oneOf('0|1|gzip|lzo|zstd'), node: p.node,
      'prune-backups': p.text('e.g. keep-last=3,keep-daily=7'), 'notes-template': p.text(undefined, { maxLength: 1024 }),
      'notification-mode': p.oneOf('auto|legacy-sendmail|notification-system'), mailto: p.text(), mailnotification: p.oneOf('always|failure'),
      protected: p.bool(), 'repeat-missed': p.bool(), bwlimit: p.int(0, 100_000_000, 'KiB/s'),
      options: p.spread('others, e.g. {"ionice":7,"fleecing":"enabled=1"}'), delete: p.unset,
    }, {
      list: read('GET /cluster/backup', '', rows('id enabled:bool schedule storage vmid pool all:bool mode node next-run:time comment')),
      get: read('GET /cluster/backup/{id}', 'id*', record()),
      create: elevated('POST /cluster/backup', `id ${BACKUP_JOB}`, done),
      update: elevated('PUT /cluster/backup/{id}', `id* ${BACKUP_JOB} delete`, done),
      delete: destructive('DELETE /cluster/backup/{id}', 'id*', done),
    }),

    tool('proxmox_cluster_replication_job', 'Storage replication between nodes.', {
      id: replicationId, target: p.target, type: p.oneOf('local'), comment: p.comment, disable: p.bool(), rate: p.num(1, 100_000, 'MB/s'),
      remove_job: p.oneOf('local|full'), schedule: p.text('e.g. */15'), source: p.node, delete: p.unset, digest: p.digest, force: p.bool(),
      keep: p.bool('keep replicated data'),
    }, {
      list: read('GET /cluster/replication', '', rows('id guest:int type source target schedule rate disable:bool comment')),
      get: read('GET /cluster/replication/{id}', 'id*', record()),
      create: elevated('POST /cluster/replication', `id* target* type ${REPLICATION}`, done, { preset: { type: 'local' } }),
      update: elevated('PUT /cluster/replication/{id}', `id* ${REPLICATION} delete digest`, done),
      delete: destructive('DELETE /cluster/replication/{id}', 'id* force keep', done),
    }),

    tool('proxmox_cluster_config', 'Membership of the cluster.', {
      node: p.node, hostname: p.text('an existing member'), password: p.secret('root password of it', { maxLength: 128 }),
      fingerprint: p.text('certificate SHA-256 of it', { pattern: /^([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}$/ }), force: p.bool(),
      nodeid: p.int(1, 10_000), votes: p.int(0, 100), link0: p.text(), wait: p.wait,
    }, {
      get: read('GET /cluster/config/join', '', record('preferred_node nodelist totem config_digest')),
      list_nodes: read('GET /cluster/config/nodes', '', rows('node nodeid:int ring0_addr quorum_votes:int')),
      get_node: read('GET /cluster/config/nodes', 'node*', record(), { run: clusterNode }),
      join: destructive('POST /cluster/config/join', 'hostname* password* fingerprint* force nodeid votes link0 wait', task,
        { note: 'Replaces the configuration of the node we talk to. Proxmox allows it to root@pam with a password only, never to an API token.' }),
      totem: read('GET /cluster/config/totem', '', record()),
    }),
  ],
}
