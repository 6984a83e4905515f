import { randomUUID } from 'node:crypto'
import type { Guest } from './guests/driver.ts'
import { createLocks, type Locks } from './locks.ts'
import type { Task } from './tasks.ts'

export interface Node {
  readonly name: string
  up: boolean
  maxcpu: number
  maxmem: number
  /** Load of other guests, for tests of placement. */
  cpu: number
  mem: number
  /** Content of /etc/hosts. */
  hosts: string
  /** On every bridge. */
  address: string
  /** Whether it answers ARP for its address only where it has it (`arp_ignore=1`). */
  arpIgnore: boolean
}

export interface Storage {
  readonly id: string
  readonly type: 'dir' | 'nfs' | 'lvm' | 'lvmthin' | 'zfspool'
  readonly content: readonly string[]
  readonly shared: boolean
  readonly nodes?: readonly string[]
  total: number
}

export interface Volume {
  readonly volid: string
  readonly storage: string
  /** A local storage holds a volume on one node. */
  readonly node: string | undefined
  readonly content: string
  size: number
  vmid?: number
  data?: Buffer
  /** What a linked clone stands on. */
  base?: string
  readonly ctime: number
}

export interface Vm {
  readonly vmid: number
  node: string
  config: Record<string, string>
  status: 'running' | 'stopped'
  startedAt: number
  pool: string | undefined
  guest: Guest | undefined
  snapshots: {
    name: string
    description: string
    time: number
    config: Record<string, string>
    parent: string | undefined
  }[]
  firewall: Firewall
  /** The agent hears nothing more until the guest is reset. */
  wedged: boolean
}

export interface Firewall {
  options: Record<string, string | number>
  rules: Record<string, string | number>[]
}

interface User {
  password: string | undefined
  enable: boolean
  tokens: Map<string, { secret: string; privsep: boolean }>
}

interface Acl {
  readonly path: string
  /** A user or a token id. */
  readonly who: string
  readonly role: string
  readonly propagate: boolean
}

export interface Timing {
  /** Delay of every 401, as the real one has it. */
  authFailureMs: number
  lockTimeoutMs: number
  storageLockTimeoutMs: number
  cloneMs: number
  fullCloneMs: number
  startMs: number
  stopMs: number
  migrateMs: number
  taskMs: number
  /** Age of what /cluster/resources tells. */
  statCacheMs: number
  agentPingMs: number
  agentCommandMs: number
  proxyTimeoutMs: number
}

/** As the real one behaves; tests shorten what they do not test. */
export const REAL_TIMING: Timing = {
  authFailureMs: 3000,
  lockTimeoutMs: 10_000,
  storageLockTimeoutMs: 10_000,
  cloneMs: 800,
  fullCloneMs: 8000,
  startMs: 700,
  stopMs: 300,
  migrateMs: 3000,
  taskMs: 150,
  statCacheMs: 10_000,
  agentPingMs: 3000,
  agentCommandMs: 5000,
  proxyTimeoutMs: 30_000,
}

export const FAST_TIMING: Timing = {
  authFailureMs: 20,
  lockTimeoutMs: 120,
  storageLockTimeoutMs: 2000,
  cloneMs: 15,
  fullCloneMs: 60,
  startMs: 10,
  stopMs: 5,
  migrateMs: 15,
  taskMs: 5,
  statCacheMs: 150,
  agentPingMs: 60,
  agentCommandMs: 100,
  proxyTimeoutMs: 150,
}

export interface State {
  readonly version: { version: string; release: string; repoid: string }
  readonly timing: Timing
  readonly nodes: Map<string, Node>
  readonly storages: Map<string, Storage>
  readonly volumes: Map<string, Volume>
  readonly vms: Map<number, Vm>
  readonly pools: Map<string, { comment: string; storages: Set<string> }>
  readonly users: Map<string, User>
  readonly roles: Map<string, Set<string>>
  readonly tickets: Map<string, { user: string; csrf: string; at: number }>
  readonly tasks: Map<string, Task>
  readonly locks: Locks
  readonly clusterFirewall: Firewall
  readonly bridges: Set<string>
  /** Networks of the SDN with their zones. */
  readonly vnets: Map<string, string>
  /** Documentation that lags behind the daemons, or is broken; undefined: one that fits. */
  apidoc: string | undefined
  acl: Acl[]
  nextIdRange: { lower: number; upper: number }
  statCache: { at: number; vms: Map<number, { name: string; status: string; template: boolean }> }
  pidCounter: number
}

export const createState = (timing: Timing, version = '9.1.4'): State => ({
  version: { version, release: version.split('.').slice(0, 2).join('.'), repoid: 'a1b2c3d4e5f60718' },
  timing,
  nodes: new Map(),
  storages: new Map(),
  volumes: new Map(),
  vms: new Map(),
  pools: new Map(),
  users: new Map(),
  roles: new Map(),
  tickets: new Map(),
  tasks: new Map(),
  locks: createLocks(),
  clusterFirewall: { options: {}, rules: [] },
  bridges: new Set(['vmbr0']),
  vnets: new Map(),
  apidoc: undefined,
  acl: [],
  nextIdRange: { lower: 100, upper: 1_000_000 },
  statCache: { at: 0, vms: new Map() },
  pidCounter: 1000,
})

export const newVm = (vmid: number, node: string, config: Record<string, string> = {}): Vm => ({
  vmid,
  node,
  config,
  status: 'stopped',
  startedAt: 0,
  pool: undefined,
  guest: undefined,
  snapshots: [],
  firewall: { options: {}, rules: [] },
  wedged: false,
})

export const freshIdentity = (): { mac: string; uuid: string; vmgenid: string } => ({
  mac: `BC:24:11:${randomUUID().slice(0, 6).match(/../g)!.join(':').toUpperCase()}`,
  uuid: randomUUID(),
  vmgenid: randomUUID(),
})

export const isTemplate = (vm: Vm): boolean => vm.config.template === '1'

/** Where a storage can be used. */
export const storageOn = (storage: Storage, node: string): boolean => storage.nodes?.includes(node) ?? true

export const usedOn = (state: State, storage: Storage, node: string): number => {
  let used = 0
  for (const volume of state.volumes.values()) {
    if (volume.storage === storage.id && (storage.shared || volume.node === node)) used += volume.size
  }
  return used
}
