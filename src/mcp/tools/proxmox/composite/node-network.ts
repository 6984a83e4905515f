import type { Composite } from '../row-context.ts'
import { item, text, without } from './values.ts'

/** Proxmox requires the type and removes settings that are not sent, so the current settings are sent along. */
export const updateIface: Composite = async (args, { call }) => {
  const { node, iface } = args
  const present = item(await call('GET /nodes/{node}/network/{iface}', { node, iface }))
  const dropped = (text(args, 'delete') ?? '').split(/[,; ]+/)
  const kept = Object.fromEntries(
    KEPT.filter(key => present[key] !== undefined && present[key] !== '' && !dropped.includes(key)).map(
      key => [key, present[key]],
    ),
  )
  // `cidr` and `address` with `netmask` mean the same: drop the form that the caller did not use.
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
