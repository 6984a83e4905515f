import { may } from '../acl.ts'
import { badParams } from '../errors.ts'
import { type Context, NODE, type Operation } from '../operation.ts'
import { isTemplate, type Node, type State } from '../state.ts'

export const clusterOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/version',
    name: 'version',
    description: 'Tells the version.',
    params: {},
    permission: { user: 'all' },
    returns: 'object',
    run: ({ state }) => state.version,
  },
  {
    method: 'GET',
    path: '/cluster/nextid',
    name: 'nextid',
    description: 'Tells a free guest id, or whether the given one is free. Reserves nothing.',
    params: { vmid: { type: 'integer', optional: true, minimum: 100, maximum: 999_999_999 } },
    permission: { user: 'all' },
    returns: 'integer',
    run: ({ state, params }) => {
      const wanted = params.vmid
      if (wanted !== undefined) {
        if (state.vms.has(Number(wanted))) throw badParams({ vmid: `VM ${wanted} already exists` })
        return String(wanted)
      }
      for (let id = state.nextIdRange.lower; id < state.nextIdRange.upper; id++)
        if (!state.vms.has(id)) return String(id)
      throw badParams({ vmid: 'unable to get any free VMID' })
    },
  },
  {
    method: 'GET',
    path: '/cluster/resources',
    name: 'resources',
    description: 'Lists what the cluster has, as it was some seconds ago.',
    params: { type: { type: 'string', optional: true, enum: ['vm', 'storage', 'node', 'sdn'] } },
    permission: { user: 'all' },
    returns: 'array',
    run: context => {
      const { type } = context.params
      return [
        ...(type === undefined || type === 'vm' ? vmResources(context) : []),
        ...(type === undefined || type === 'node'
          ? [...context.state.nodes.values()].map(node => ({
              id: `node/${node.name}`,
              type: 'node',
              ...nodeEntry(context, node),
            }))
          : []),
        ...(type === undefined || type === 'storage' ? storageResources(context) : []),
      ]
    },
  },
  {
    method: 'GET',
    path: '/cluster/status',
    name: 'get_status',
    description: 'Tells the state of the cluster.',
    params: {},
    permission: { check: ['/', ['Sys.Audit']] },
    returns: 'array',
    run: ({ state }) => [
      { id: 'cluster', type: 'cluster', name: 'emulated', quorate: 1, nodes: state.nodes.size, version: 1 },
      ...[...state.nodes.values()].map(({ name, up, address }, index) => ({
        id: `node/${name}`,
        type: 'node',
        name,
        ip: address,
        nodeid: index + 1,
        online: Number(up),
        local: Number(index === 0),
      })),
    ],
  },
  {
    method: 'GET',
    path: '/nodes',
    name: 'index',
    description: 'Lists the nodes.',
    params: {},
    permission: { user: 'all' },
    returns: 'array',
    run: context =>
      [...context.state.nodes.values()].map(node => ({
        id: `node/${node.name}`,
        type: 'node',
        ...nodeEntry(context, node),
      })),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/status',
    name: 'status',
    description: 'Tells the state of a node.',
    params: { node: NODE },
    permission: { check: ['/nodes/{node}', ['Sys.Audit']] },
    onNode: true,
    returns: 'object',
    run: ({ state, params }) => {
      const node = state.nodes.get(String(params.node))!
      return {
        cpu: node.cpu,
        cpuinfo: { cpus: node.maxcpu },
        memory: { total: node.maxmem, used: node.mem, free: node.maxmem - node.mem },
        uptime: 1000,
        pveversion: `pve-manager/${state.version.version}`,
      }
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/network',
    name: 'index',
    description: 'Lists the networks of a node.',
    params: { node: NODE, type: { type: 'string', optional: true } },
    permission: { user: 'all' },
    onNode: true,
    returns: 'array',
    run: ({ state, auth, params }) =>
      [...state.bridges]
        .filter(bridge =>
          may(state, auth, `/sdn/zones/localnetwork/${bridge}`, ['SDN.Audit', 'SDN.Use'], true),
        )
        .map(iface => {
          const { address } = state.nodes.get(String(params.node))!
          return {
            iface,
            type: 'bridge',
            active: 1,
            autostart: 1,
            address,
            netmask: '24',
            cidr: `${address}/24`,
          }
        }),
  },
]

/** Ids come from the configuration files, but name and state from a cache that is up to ten seconds old. */
const vmResources = ({ state, auth }: Context) => {
  refreshStats(state)
  return [...state.vms.values()]
    .filter(vm => may(state, auth, `/vms/${vm.vmid}`, ['VM.Audit']))
    .map(vm => {
      const known = state.statCache.vms.get(vm.vmid)
      const up = state.nodes.get(vm.node)?.up
      return {
        id: `qemu/${vm.vmid}`,
        type: 'qemu',
        vmid: vm.vmid,
        node: vm.node,
        status: known && up ? known.status : 'unknown',
        template: Number(known?.template ?? false),
        maxmem: Number(vm.config.memory ?? 512) * 1024 ** 2,
        maxcpu: Number(vm.config.cores ?? 1),
        ...(known ? { name: known.name } : {}),
        ...(vm.config.tags ? { tags: vm.config.tags } : {}),
        ...(vm.config.lock ? { lock: vm.config.lock } : {}),
        ...(vm.pool !== undefined && may(state, auth, `/pool/${vm.pool}`, ['Pool.Audit'])
          ? { pool: vm.pool }
          : {}),
      }
    })
}

const refreshStats = (state: State): void => {
  if (Date.now() - state.statCache.at < state.timing.statCacheMs) return
  const vms = new Map<number, { name: string; status: string; template: boolean }>()
  for (const vm of state.vms.values()) {
    vms.set(vm.vmid, { name: vm.config.name ?? `VM ${vm.vmid}`, status: vm.status, template: isTemplate(vm) })
  }
  state.statCache = { at: Date.now(), vms }
}

/** Load and memory are shown only to those who may audit the node. */
const nodeEntry = ({ state, auth }: Context, node: Node) => {
  const basic = { node: node.name, status: node.up ? 'online' : 'offline' }
  if (!may(state, auth, `/nodes/${node.name}`, ['Sys.Audit']) || !node.up) return basic
  return { ...basic, cpu: node.cpu, maxcpu: node.maxcpu, mem: node.mem, maxmem: node.maxmem, uptime: 1000 }
}

const storageResources = ({ state, auth }: Context) =>
  [...state.storages.values()].flatMap(storage =>
    [...state.nodes.keys()]
      .filter(
        node =>
          (storage.nodes?.includes(node) ?? true) &&
          may(state, auth, `/storage/${storage.id}`, ['Datastore.Audit']),
      )
      .map(node => ({
        id: `storage/${node}/${storage.id}`,
        type: 'storage',
        storage: storage.id,
        node,
        status: 'available',
        content: storage.content.join(','),
        plugintype: storage.type,
        shared: Number(storage.shared),
        maxdisk: storage.total,
        disk: 0,
      })),
  )
