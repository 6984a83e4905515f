import { done, record, rows } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const sid = p.text('e.g. vm:100, ct:101', { pattern: /^(?:(?:vm|ct):)?\d{3,9}$/ })
const RESOURCE = 'comment failback group max_relocate max_restart state'
const RULE = 'resources nodes affinity strict comment disable'
const MIGRATED =
  'Proxmox VE 9 has moved groups into rules: once a cluster is upgraded this answers an error; use proxmox_ha_rule.'

// biome-ignore format: it is a table
export const ha: Toolset = {
  name: 'proxmox-ha',
  about: 'High availability: resources, rules (PVE 9), groups (PVE 8).',
  tools: [
    tool('proxmox_ha_resource', 'Guests under high availability.', {
      sid, type: p.oneOf('ct|vm'), comment: p.comment, failback: p.bool(), group: p.name('PVE 8'), max_relocate: p.int(0, 1000),
      max_restart: p.int(0, 1000),
      state: p.oneOf('started|stopped|enabled|disabled|ignored'), node: p.node, purge: p.bool('from rules too'), delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/ha/resources', 'type', rows('sid type state group max_restart:int max_relocate:int failback:bool comment')),
      get: read('GET /cluster/ha/resources/{sid}', 'sid*', record()),
      status: read('GET /cluster/ha/status/current', '', rows('id type node status state crm_state request_state timestamp:time')),
      create: elevated('POST /cluster/ha/resources', `sid* type ${RESOURCE}`, done),
      update: elevated('PUT /cluster/ha/resources/{sid}', `sid* ${RESOURCE} delete digest`, done),
      delete: destructive('DELETE /cluster/ha/resources/{sid}', 'sid* purge', done),
      migrate: elevated('POST /cluster/ha/resources/{sid}/migrate', 'sid* node*', record()),
      relocate: elevated('POST /cluster/ha/resources/{sid}/relocate', 'sid* node*', record(), { note: 'Stops the guest, then starts it there.' }),
    }),

    tool('proxmox_ha_rule', 'HA rules of PVE 9: which nodes a guest prefers, which guests stay together or apart.', {
      rule: p.name('rule id'), type: p.oneOf('node-affinity|resource-affinity'), resources: p.text('vm:100,ct:101'),
      nodes: p.text('node[:priority], comma separated'),
      affinity: p.oneOf('positive|negative', 'together or apart'), strict: p.bool('only on these nodes'), comment: p.comment, disable: p.bool(),
      resource: p.text('only rules of this one'), delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/ha/rules', 'type resource', rows('rule type resources nodes affinity strict:bool disable:bool comment')),
      get: read('GET /cluster/ha/rules/{rule}', 'rule*', record()),
      create: elevated('POST /cluster/ha/rules', `rule* type* resources* ${RULE.replace('resources ', '')}`, done),
      update: elevated('PUT /cluster/ha/rules/{rule}', `rule* type* ${RULE} delete digest`, done),
      delete: destructive('DELETE /cluster/ha/rules/{rule}', 'rule*', done),
    }),

    tool('proxmox_ha_group', 'HA groups of PVE 8 (PVE 9: proxmox_ha_rule).', {
      group: p.name(), nodes: p.text('node[:priority], comma separated'), comment: p.comment, nofailback: p.bool(), restricted: p.bool(),
      type: p.oneOf('group'), delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/ha/groups', '', rows('group nodes restricted:bool nofailback:bool comment')),
      get: read('GET /cluster/ha/groups/{group}', 'group*', record()),
      create: elevated('POST /cluster/ha/groups', 'group* nodes* comment nofailback restricted type', done, { note: MIGRATED }),
      update: elevated('PUT /cluster/ha/groups/{group}', 'group* nodes comment nofailback restricted delete digest', done, { note: MIGRATED }),
      delete: destructive('DELETE /cluster/ha/groups/{group}', 'group*', done, { note: MIGRATED }),
    }),
  ],
}
