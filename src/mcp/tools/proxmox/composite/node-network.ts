import type { Composite } from '../row-context.ts'
import { item, text, without } from './values.ts'

/** Proxmox demands the type with every change and takes a missing setting for a removed one. */
export const updateIface: Composite = async (args, { call }) => {
  const { node, iface } = args
  const present = item(await call('GET /nodes/{node}/network/{iface}', { node, iface }))
  const dropped = (text(args, 'delete') ?? '').split(/[,; ]+/)
  const kept = Object.fromEntries(
    KEPT.filter(key => present[key] !== undefined && present[key] !== '' && !dropped.includes(key)).map(
      key => [key, present[key]],
    ),
  )
  // An address is written in two ways; the older one must not contradict the newer.
  if (args.cidr !== undefined) for (const key of ['address', 'netmask']) delete kept[key]
  if (args.address !== undefined) delete kept.cidr
  return call('PUT /nodes/{node}/network/{iface}', { ...kept, ...without(args) })
}

const KEPT = [
  'type',
  'autostart',
  'cidr',
  'cidr6',
  'gateway',
  'gateway6',
  'mtu',
  'comments',
  'bridge_ports',
  'bridge_vlan_aware',
  'bridge_vids',
  'bond_mode',
  'bond_xmit_hash_policy',
  'bond-primary',
  'slaves',
  'vlan-id',
  'vlan-raw-device',
  'ovs_bonds',
  'ovs_bridge',
  'ovs_options',
  'ovs_ports',
  'ovs_tag',
]

export const applyNetwork: Composite = ({ node, revert }, { call }) =>
  revert === true
    ? call('DELETE /nodes/{node}/network', { node })
    : call('PUT /nodes/{node}/network', { node })
