import { createSubnet, listSubnets, subnet } from '../composite/sdn-actions.ts'
import { done, record, rows, task } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { destructive, elevated, read, type Toolset, tool } from './define-row.ts'

const ID = /^[A-Za-z][A-Za-z0-9]{0,7}$/
const zone = p.text(undefined, { pattern: ID })
const vnet = p.text(undefined, { pattern: ID })
const PENDING = 'pending'
const pending = p.bool('with changes not applied')
const VNET = 'alias tag vlanaware isolate-ports'
const ZONE =
  'bridge nodes mtu tag ipam dns dnszone dhcp peers controller vrf-vxlan exitnodes mac vlan-protocol fabric'
const CONTROLLER = 'asn peers node ebgp loopback fabric isis-domain isis-ifaces isis-net'
const SUBNET = 'gateway dhcp-range dhcp-dns-server dnszoneprefix snat'

// biome-ignore format: it is a table
export const sdn: Toolset = {
  name: 'proxmox-sdn',
  about: 'Software defined network: zones, vnets, subnets, controllers. Nothing takes effect before proxmox_sdn apply.',
  tools: [
    tool('proxmox_sdn', 'Apply or drop pending SDN changes.', { node: p.node, wait: p.wait }, {
      apply: elevated('PUT /cluster/sdn', 'wait', task),
      rollback: elevated('POST /cluster/sdn/rollback', '', done, { note: 'Drops every change that was not applied.' }),
      dry_run: read('GET /cluster/sdn/dry-run', 'node*', record()),
      ipams: read('GET /cluster/sdn/ipams', '', rows('ipam type')),
    }),

    tool('proxmox_sdn_vnet', 'Virtual networks. `apply` with proxmox_sdn.', {
      vnet, zone, alias: p.text(undefined, { maxLength: 256 }), tag: p.int(1, 16_777_215, 'VLAN or VXLAN id'), vlanaware: p.bool(),
      'isolate-ports': p.bool('guests cannot reach each other'), pending, delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/sdn/vnets', PENDING, rows('vnet zone tag:int alias vlanaware:bool isolate-ports:bool state')),
      get: read('GET /cluster/sdn/vnets/{vnet}', `vnet* ${PENDING}`, record()),
      create: elevated('POST /cluster/sdn/vnets', `vnet* zone* ${VNET}`, done),
      update: elevated('PUT /cluster/sdn/vnets/{vnet}', `vnet* zone ${VNET} delete digest`, done),
      delete: destructive('DELETE /cluster/sdn/vnets/{vnet}', 'vnet*', done),
    }),

    tool('proxmox_sdn_zone', 'Zones. `apply` with proxmox_sdn.', {
      zone, type: p.oneOf('simple|vlan|qinq|vxlan|evpn|faucet'), bridge: p.text(), nodes: p.text('comma separated'), mtu: p.int(0, 65_535),
      tag: p.int(0, 16_777_215, 'qinq'), ipam: p.name(), dns: p.name(), dnszone: p.text(),
      dhcp: p.oneOf('dnsmasq'), peers: p.text('vxlan addresses'), controller: p.name('evpn'), 'vrf-vxlan': p.int(1, 16_777_215), exitnodes: p.text(),
      mac: p.text(), 'vlan-protocol': p.oneOf('802.1q|802.1ad'), fabric: p.name(), pending, delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/sdn/zones', `type ${PENDING}`, rows('zone type bridge nodes mtu:int tag:int ipam dhcp state')),
      get: read('GET /cluster/sdn/zones/{zone}', `zone* ${PENDING}`, record()),
      create: elevated('POST /cluster/sdn/zones', `zone* type* ${ZONE}`, done),
      update: elevated('PUT /cluster/sdn/zones/{zone}', `zone* ${ZONE} delete digest`, done),
      delete: destructive('DELETE /cluster/sdn/zones/{zone}', 'zone*', done),
    }),

    tool('proxmox_sdn_controller', 'Routing controllers. `apply` with proxmox_sdn.', {
      controller: p.name(), type: p.oneOf('evpn|bgp|isis|faucet'), asn: p.int(0, 4_294_967_295), peers: p.text('comma separated'), node: p.node,
      ebgp: p.bool(), loopback: p.text(), fabric: p.name(),
      'isis-domain': p.text(), 'isis-ifaces': p.text(), 'isis-net': p.text(), pending, delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/sdn/controllers', `type ${PENDING}`, rows('controller type asn:int peers node state')),
      get: read('GET /cluster/sdn/controllers/{controller}', `controller* ${PENDING}`, record()),
      create: elevated('POST /cluster/sdn/controllers', `controller* type* ${CONTROLLER}`, done),
      update: elevated('PUT /cluster/sdn/controllers/{controller}', `controller* ${CONTROLLER} delete digest`, done),
      delete: destructive('DELETE /cluster/sdn/controllers/{controller}', 'controller*', done),
    }),

    tool('proxmox_sdn_subnet', 'Subnets of a vnet. `apply` with proxmox_sdn.', {
      vnet, subnet: p.text('CIDR, or its id zone-10.0.0.0-24', { pattern: /^(?:[A-Za-z][A-Za-z0-9]*-)?[0-9A-Fa-f][0-9A-Fa-f.:]*[-/]\d{1,3}$/ }),
      gateway: p.text(), 'dhcp-range': p.strings('start-address=…,end-address=…'),
      'dhcp-dns-server': p.text(), dnszoneprefix: p.text(), snat: p.bool(), pending, delete: p.unset, digest: p.digest,
    }, {
      list: read('GET /cluster/sdn/vnets/{vnet}/subnets', `vnet ${PENDING}`, rows('subnet cidr vnet zone gateway snat:bool dhcp-range state'),
        { run: listSubnets, note: 'Of all vnets if none is named.' }),
      get: read('GET /cluster/sdn/vnets/{vnet}/subnets/{subnet}', `subnet* vnet ${PENDING}`, record(), { run: subnet('GET') }),
      create: elevated('POST /cluster/sdn/vnets/{vnet}/subnets', `vnet* subnet* ${SUBNET}`, done, { preset: { type: 'subnet' }, run: createSubnet }),
      update: elevated('PUT /cluster/sdn/vnets/{vnet}/subnets/{subnet}', `subnet* vnet ${SUBNET} delete digest`, done, { run: subnet('PUT') }),
      delete: destructive('DELETE /cluster/sdn/vnets/{vnet}/subnets/{subnet}', 'subnet* vnet', done, { run: subnet('DELETE') }),
    }),
  ],
}
