import { renameGroup } from '../composite/firewall-group.ts'
import { done, record, rows } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

export const RULE_COLUMNS =
  'pos:int enable:bool type action macro proto source sport dest dport iface icmp-type log comment'
/** Parameters of a rule, except action and direction. */
export const FIREWALL_RULE = 'enable macro proto source sport dest dport iface icmp-type log comment'

const pos = p.int(0, 100_000, 'rule number')

/** The API calls the direction `type`. Guest tools call it `rule_type`, because `type` is the type of the guest. */
export const firewallRule = (typeName: 'type' | 'rule_type'): Record<string, p.Param> => ({
  pos,
  rule_action: p.text('ACCEPT, DROP, REJECT or a group', {
    api: 'action',
    pattern: /^[A-Za-z][A-Za-z0-9_-]{1,19}$/,
  }),
  [typeName]: p.oneOf('in|out|forward|group', undefined, { api: 'type' }),
  enable: p.bool(),
  macro: p.name(),
  proto: p.text(),
  source: p.text('address, CIDR, alias or +ipset', { maxLength: 512 }),
  sport: p.text(),
  dest: p.text('as source', { maxLength: 512 }),
  dport: p.text('e.g. 22, 80:85, http'),
  iface: p.text('e.g. net0', { maxLength: 20 }),
  'icmp-type': p.text(),
  log: p.oneOf('emerg|alert|crit|err|warning|notice|info|debug|nolog'),
  comment: p.comment,
  moveto: p.int(0, 100_000, 'new position'),
  delete: p.unset,
  digest: p.digest,
})

const policy = p.oneOf('ACCEPT|REJECT|DROP')
const ipset = p.name('IP set')
const cidr = p.text('address, CIDR or alias', { pattern: /^[A-Za-z0-9_.:-]+(\/\d{1,3})?$/ })

// biome-ignore format: it is a table
export const firewall: Toolset = {
  name: 'proxmox-firewall',
  about: 'Firewall of the cluster: rules, security groups, aliases, IP sets, options.',
  tools: [
    tool('proxmox_cluster_firewall_rule', 'Firewall rules of the cluster.', firewallRule('type'), {
      list: read('GET /cluster/firewall/rules', '', rows(RULE_COLUMNS)),
      get: read('GET /cluster/firewall/rules/{pos}', 'pos*', record(RULE_COLUMNS)),
      create: elevated('POST /cluster/firewall/rules', `rule_action* type* pos ${FIREWALL_RULE}`, done),
      update: elevated('PUT /cluster/firewall/rules/{pos}', `pos* rule_action type moveto delete digest ${FIREWALL_RULE}`, done),
      delete: destructive('DELETE /cluster/firewall/rules/{pos}', 'pos* digest', done),
    }),

    tool('proxmox_cluster_firewall_group', 'Security groups: named sets of rules.', {
      group: p.text(undefined, { pattern: /^[A-Za-z][A-Za-z0-9_-]{1,17}$/ }), comment: p.comment,
      rename: p.text('new name', { pattern: /^[A-Za-z][A-Za-z0-9_-]{1,17}$/ }), digest: p.digest,
      ...omit(firewallRule('type'), 'digest', 'comment'),
    }, {
      list: read('GET /cluster/firewall/groups', '', rows('group comment')),
      get: read('GET /cluster/firewall/groups/{group}', 'group*', rows(RULE_COLUMNS)),
      create: elevated('POST /cluster/firewall/groups', 'group* comment', done),
      update: elevated('POST /cluster/firewall/groups', 'group* comment rename digest', done, { run: renameGroup }),
      delete: destructive('DELETE /cluster/firewall/groups/{group}', 'group*', done),
      add_rule: elevated('POST /cluster/firewall/groups/{group}', `group* rule_action* type* pos ${FIREWALL_RULE}`, done),
      update_rule: elevated('PUT /cluster/firewall/groups/{group}/{pos}', `group* pos* rule_action type moveto delete digest ${FIREWALL_RULE}`, done),
      delete_rule: destructive('DELETE /cluster/firewall/groups/{group}/{pos}', 'group* pos* digest', done),
    }),

    tool('proxmox_cluster_firewall', 'Firewall options, macros and references.', {
      enable: p.bool('of the whole cluster'), policy_in: policy, policy_out: policy, policy_forward: p.oneOf('ACCEPT|DROP'),
      ebtables: p.bool(), log_ratelimit: p.text(), delete: p.unset, digest: p.digest, type: p.oneOf('alias|ipset'), ...p.paging,
    }, {
      get_options: read('GET /cluster/firewall/options', '', record()),
      update_options: elevated('PUT /cluster/firewall/options', 'enable policy_in policy_out policy_forward ebtables log_ratelimit delete digest', done),
      list_macros: read('GET /cluster/firewall/macros', p.PAGED, rows('macro descr')),
      list_refs: read('GET /cluster/firewall/refs', 'type', rows('type name ref scope comment')),
    }),

    tool('proxmox_cluster_firewall_alias', 'Names for addresses.', { name: p.name(), cidr, comment: p.comment, rename: p.name('new name'), digest: p.digest }, {
      list: read('GET /cluster/firewall/aliases', '', rows('name cidr comment')),
      get: read('GET /cluster/firewall/aliases/{name}', 'name*', record('name cidr comment')),
      create: elevated('POST /cluster/firewall/aliases', 'name* cidr* comment', done),
      update: elevated('PUT /cluster/firewall/aliases/{name}', 'name* cidr* comment rename digest', done),
      delete: destructive('DELETE /cluster/firewall/aliases/{name}', 'name* digest', done),
    }),

    tool('proxmox_cluster_firewall_ipset', 'IP sets.', { name: ipset, comment: p.comment, force: p.bool('even if not empty') }, {
      list: read('GET /cluster/firewall/ipset', '', rows('name comment')),
      create: elevated('POST /cluster/firewall/ipset', 'name* comment', done),
      delete: destructive('DELETE /cluster/firewall/ipset/{name}', 'name* force', done),
    }),

    tool('proxmox_cluster_firewall_ipset_entry', 'Entries of an IP set.', { name: ipset, cidr, comment: p.comment, nomatch: p.bool('exclude'), digest: p.digest }, {
      list: read('GET /cluster/firewall/ipset/{name}', 'name*', rows('cidr nomatch:bool comment')),
      create: elevated('POST /cluster/firewall/ipset/{name}', 'name* cidr* comment nomatch', done),
      update: elevated('PUT /cluster/firewall/ipset/{name}/{cidr}', 'name* cidr* comment nomatch digest', done),
      delete: destructive('DELETE /cluster/firewall/ipset/{name}/{cidr}', 'name* cidr* digest', done),
    }),
  ],
}

function omit(params: Record<string, p.Param>, ...names: string[]): Record<string, p.Param> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !names.includes(name)))
}
