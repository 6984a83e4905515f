import type { ProxmoxApi } from '../../../src/mcp/tools/proxmox/row-context.ts'
import { createCatalogue } from '../../../src/proxmox/catalogue/load-catalogue.ts'
import type { Sent } from './api-checker.ts'

export const UPID = 'UPID:pve1:0000C530:001C9BEC:677E6FB8:qmstart:100:agent@pve!deputy:'

type Answer = unknown | ((request: Sent) => unknown)

/** Answers as the real API gives them: numbers as strings, flags as 0 and 1, oldest measurement first. */
const ANSWERS: readonly (readonly [RegExp, Answer])[] = [
  [
    /^GET \/cluster\/resources$/,
    ({ params }: Sent) =>
      resources().filter(one => params.type === undefined || kindOf(one.type) === params.type),
  ],
  [/^GET \/cluster\/nextid$/, '100'],
  [
    /^GET \/cluster\/status$/,
    [
      { type: 'cluster', name: 'lab', quorate: 1, nodes: 2 },
      { type: 'node', name: 'pve1', online: 1, nodeid: 1, ip: '192.0.2.1' },
      { type: 'node', name: 'pve2', online: 1, nodeid: 2 },
    ],
  ],
  [/^GET \/cluster\/config\/nodes$/, [{ node: 'pve1', nodeid: '1', quorum_votes: '1' }]],
  [/^GET \/cluster\/sdn\/vnets$/, [{ vnet: 'vnet1', zone: 'zone1' }]],
  [
    /^GET \/cluster\/sdn\/vnets\/[^/]+\/subnets$/,
    [{ subnet: 'zone1-10.0.0.0-24', cidr: '10.0.0.0/24', vnet: 'vnet1', zone: 'zone1' }],
  ],
  [/^GET \/cluster\/sdn\/vnets\/[^/]+$/, { vnet: 'vnet1', zone: 'zone1' }],
  [
    /^GET \/nodes$/,
    [
      {
        node: 'pve1',
        status: 'online',
        cpu: 0.0123,
        maxcpu: 8,
        mem: 8589934592,
        maxmem: 34359738368,
        uptime: 100,
      },
    ],
  ],
  [/^GET \/nodes\/[^/]+\/hosts$/, { data: '127.0.0.1 localhost\n192.0.2.1 pve1.lab pve1\n', digest: 'ab12' }],
  [/^GET \/nodes\/[^/]+\/dns$/, { search: 'lab', dns1: '192.0.2.53' }],
  [
    /^GET \/nodes\/[^/]+\/network\/[^/]+$/,
    {
      type: 'bridge',
      cidr: '192.0.2.1/24',
      bridge_ports: 'eno1',
      autostart: 1,
      method: 'static',
      method6: 'manual',
      families: ['inet'],
      priority: 3,
      active: 1,
    },
  ],
  [
    /^GET \/nodes\/[^/]+\/(qemu|lxc)\/\d+\/config$/,
    { net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1', memory: '2048', onboot: 1 },
  ],
  [/^GET \/nodes\/[^/]+\/tasks\/[^/]+\/status$/, { status: 'stopped', exitstatus: 'OK', upid: UPID }],
  [
    /^GET \/nodes\/[^/]+\/tasks\/[^/]+\/log$/,
    [
      { n: 1, t: 'starting' },
      { n: 2, t: 'TASK OK' },
    ],
  ],
  [
    /^GET \/nodes\/[^/]+\/disks\/lvm$/,
    {
      leaf: 0,
      children: [{ name: 'pve', size: '1000', free: '10', children: [{ name: '/dev/sda3', size: '1000' }] }],
    },
  ],
  [
    /^GET \/nodes\/[^/]+\/ceph\/osd$/,
    {
      root: {
        children: [
          { type: 'host', name: 'pve1', children: [{ id: '0', type: 'osd', name: 'osd.0', status: 'up' }] },
        ],
      },
    },
  ],
  [/^POST \/nodes\/[^/]+\/qemu\/\d+\/agent\/exec$/, { pid: 42 }],
  [/^GET \/nodes\/[^/]+\/qemu\/\d+\/agent\/exec-status$/, { exited: 1, exitcode: 0, 'out-data': 'hÃ¤llo\n' }],
  [/^GET \/nodes\/[^/]+\/qemu\/\d+\/agent\/file-read$/, { content: 'hÃ¤llo\n' }],
  [/^GET \/nodes\/[^/]+\/qemu\/\d+\/agent\//, { result: [] }],
  [/^GET \/access\/groups\/[^/]+$/, { members: ['root@pam'] }],
  [/^GET \/access\/users\/[^/]+$/, { groups: ['ops'] }],
  [
    /^(POST|PUT|DELETE) \/nodes\/[^/]+\/(qemu|lxc|vzdump|startall|stopall|storage|apt|ceph|disks|services)/,
    UPID,
  ],
]

const kindOf = (type: unknown) => (type === 'qemu' || type === 'lxc' ? 'vm' : type)

const resources = (): Record<string, unknown>[] => [
  {
    id: 'qemu/100',
    type: 'qemu',
    vmid: 100,
    name: 'web',
    status: 'running',
    node: 'pve1',
    cpu: 0.0123,
    maxcpu: 2,
    mem: 1610612736,
    maxmem: 2147483648,
    maxdisk: 34359738368,
    uptime: 3600,
    template: 0,
    tags: 'prod;web',
    pool: 'web',
  },
  {
    id: 'lxc/101',
    type: 'lxc',
    vmid: 101,
    name: 'db',
    status: 'stopped',
    node: 'pve2',
    cpu: 0,
    maxcpu: 1,
    mem: 0,
    maxmem: 536870912,
    maxdisk: 8589934592,
    uptime: 0,
    template: 0,
  },
  {
    id: 'qemu/102',
    type: 'qemu',
    vmid: 102,
    name: 'vault',
    status: 'running',
    node: 'pve1',
    template: 0,
    tags: 'protected',
  },
  {
    id: 'qemu/100000',
    type: 'qemu',
    vmid: 100000,
    name: 'job-1',
    status: 'running',
    node: 'pve1',
    template: 0,
    tags: 'deputy',
  },
  { id: 'node/pve1', type: 'node', node: 'pve1', status: 'online' },
  {
    id: 'storage/pve1/local',
    type: 'storage',
    storage: 'local',
    node: 'pve1',
    plugintype: 'dir',
    status: 'available',
    disk: 1,
    maxdisk: 10,
    shared: 0,
  },
]

export interface FakeCluster extends ProxmoxApi {
  readonly sent: Sent[]
}

/** A client that writes down what it is asked and answers from the list above, or from the test's own. */
export const createFakeCluster = (own: Readonly<Record<string, Answer>> = {}): FakeCluster => {
  const sent: Sent[] = []
  return {
    sent,
    request: async <T>(method: string, path: string, params: object = {}) => {
      const request: Sent = { method, path, params: params as Sent['params'] }
      sent.push(request)
      const key = `${method} ${decodeURIComponent(path)}`
      const found = key in own ? own[key] : ANSWERS.find(([pattern]) => pattern.test(key))?.[1]
      const answer = typeof found === 'function' ? found(request) : found
      if (answer instanceof Error) throw answer
      return (answer === undefined ? (method === 'GET' ? [] : null) : answer) as T
    },
    waitTask: async upid => ({ upid, exitStatus: 'OK', warnings: false, log: [] }),
    catalogue: async () => createCatalogue([], { source: 'none', version: '9.1' }),
  }
}
