import { die } from '../errors.ts'
import { type Context, NODE, type Operation, VMID } from '../operation.ts'
import type { ParamSchema, ParamTable, Values } from '../schema.ts'
import type { Firewall } from '../state.ts'
import { vmOf } from '../vm.ts'

const S: ParamSchema = { type: 'string', optional: true }
const B: ParamSchema = { type: 'boolean', optional: true }
const POLICY: ParamSchema = { ...S, enum: ['ACCEPT', 'REJECT', 'DROP'] }
const LEVEL: ParamSchema = {
  ...S,
  enum: ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug', 'nolog'],
}

const OPTIONS: ParamTable = {
  enable: B,
  policy_in: POLICY,
  policy_out: POLICY,
  dhcp: B,
  ndp: B,
  radv: B,
  ipfilter: B,
  macfilter: B,
  log_level_in: LEVEL,
  log_level_out: LEVEL,
  delete: { ...S, format: 'pve-configid-list' },
  digest: { ...S, maxLength: 64 },
}

const RULE: ParamTable = {
  macro: { ...S, maxLength: 128 },
  proto: { ...S, format: 'pve-fw-protocol-spec' },
  source: { ...S, maxLength: 512, format: 'pve-fw-addr-spec' },
  dest: { ...S, maxLength: 512, format: 'pve-fw-addr-spec' },
  sport: { ...S, format: 'pve-fw-dport-spec' },
  dport: { ...S, format: 'pve-fw-dport-spec' },
  iface: { ...S, minLength: 2, maxLength: 20 },
  enable: { type: 'integer', optional: true, minimum: 0 },
  comment: S,
  log: LEVEL,
  'icmp-type': S,
  digest: { ...S, maxLength: 64 },
}

const at = '/nodes/{node}/qemu/{vmid}/firewall'
const GUEST = { node: NODE, vmid: VMID }
const READ = { check: ['/vms/{vmid}', ['VM.Audit']] } as const
const WRITE = { check: ['/vms/{vmid}', ['VM.Config.Network']] } as const

export const firewallOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: `${at}/options`,
    name: 'get_options',
    description: 'Tells the firewall options of a guest.',
    params: GUEST,
    permission: READ,
    onNode: true,
    returns: 'object',
    run: context => vmOf(context).firewall.options,
  },
  {
    method: 'PUT',
    path: `${at}/options`,
    name: 'set_options',
    description: 'Sets the firewall options of a guest.',
    params: { ...GUEST, ...OPTIONS },
    permission: WRITE,
    onNode: true,
    returns: 'null',
    run: context => setOptions(vmOf(context).firewall, context.params),
  },
  {
    method: 'GET',
    path: `${at}/rules`,
    name: 'get_rules',
    description: 'Lists the firewall rules of a guest.',
    params: GUEST,
    permission: READ,
    returns: 'array',
    run: context => vmOf(context).firewall.rules.map((rule, pos) => ({ ...rule, pos })),
  },
  {
    method: 'POST',
    path: `${at}/rules`,
    name: 'create_rule',
    description: 'Adds a firewall rule to a guest, before all others unless told where.',
    params: {
      ...GUEST,
      type: { type: 'string', enum: ['in', 'out', 'forward', 'group'] },
      action: { type: 'string', minLength: 2, maxLength: 20 },
      pos: { type: 'integer', optional: true, minimum: 0 },
      ...RULE,
    },
    permission: WRITE,
    returns: 'null',
    run: context => {
      const { rules } = vmOf(context).firewall
      // A rule without `enable` is there but does nothing.
      const rule = { enable: 0, ...ruleFields(context) }
      rules.splice(Math.min(Number(context.params.pos ?? 0), rules.length), 0, rule)
      return null
    },
  },
  {
    method: 'DELETE',
    path: `${at}/rules/{pos}`,
    name: 'delete_rule',
    description: 'Removes a firewall rule of a guest.',
    params: { ...GUEST, pos: { type: 'integer', minimum: 0 }, digest: { ...S, maxLength: 64 } },
    permission: WRITE,
    returns: 'null',
    run: context => {
      const { rules } = vmOf(context).firewall
      const pos = Number(context.params.pos)
      if (pos >= rules.length) die(`no rule at position ${pos}`)
      rules.splice(pos, 1)
      return null
    },
  },
  {
    method: 'GET',
    path: '/cluster/firewall/options',
    name: 'get_options',
    description: 'Tells the firewall options of the cluster.',
    params: {},
    permission: { check: ['/', ['Sys.Audit']] },
    returns: 'object',
    run: ({ state }) => state.clusterFirewall.options,
  },
  {
    method: 'PUT',
    path: '/cluster/firewall/options',
    name: 'set_options',
    description: 'Sets the firewall options of the cluster.',
    params: {
      enable: { type: 'integer', optional: true, minimum: 0 },
      policy_in: POLICY,
      policy_out: POLICY,
      delete: S,
      digest: S,
    },
    permission: { check: ['/', ['Sys.Modify']] },
    returns: 'null',
    run: ({ state, params }) => setOptions(state.clusterFirewall, params),
  },
]

const setOptions = (firewall: Firewall, params: Values): null => {
  const { node: _, vmid: __, digest: ___, delete: deletes, ...options } = params
  for (const key of String(deletes ?? '').split(/[\s,;]+/)) delete firewall.options[key]
  for (const [key, value] of Object.entries(options))
    firewall.options[key] = typeof value === 'boolean' ? Number(value) : (value as string)
  return null
}

const ruleFields = ({ params }: Context): Record<string, string | number> => {
  const { node: _, vmid: __, digest: ___, pos: ____, ...fields } = params
  return fields as Record<string, string | number>
}
