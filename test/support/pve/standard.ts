import { agentPrivileges } from '../../../src/proxmox/privileges.ts'
import { freshIdentity, newVm, type State } from './state.ts'
import { putVolume } from './vm.ts'

export interface Standard {
  readonly user: string
  readonly tokenName: string
  readonly secret: string
  readonly rootPassword: string
}

const GIB = 1024 ** 3

/**
 * A small cluster as a user would have it: a template, a pool for jobs, a storage for seeds, and a token
 * with the least rights that jobs need.
 */
const HOSTS = '127.0.0.1 localhost\n'

export const buildStandard = (state: State, nodes: readonly string[]): Standard => {
  const standard = {
    user: 'deputy@pve',
    tokenName: 'jobs',
    secret: '5f0c4a9e-3f1e-4a53-9d5c-0a8a6c1b7e11',
    rootPassword: 'emulator',
  }
  for (const name of nodes) {
    state.nodes.set(name, {
      name,
      up: true,
      maxcpu: 16,
      maxmem: 64 * GIB,
      cpu: 0.1,
      mem: 8 * GIB,
      hosts: HOSTS,
      address: '127.0.0.1',
      arpIgnore: false,
    })
  }
  addStorages(state)
  addTemplate(state, { vmid: 9000, node: nodes[0]!, name: 'agent-template', storage: 'shared' })
  addTemplate(state, { vmid: 9001, node: nodes[0]!, name: 'local-template', storage: 'local-lvm' })
  state.pools.set('jobs', { comment: 'machines of Deputy', storages: new Set() })
  state.users.set('root@pam', { password: standard.rootPassword, enable: true, tokens: new Map() })
  state.users.set(standard.user, {
    password: 'deputy-password',
    enable: true,
    tokens: new Map([[standard.tokenName, { secret: standard.secret, privsep: true }]]),
  })
  grantLeast(state, standard)
  return standard
}

const addStorages = (state: State): void => {
  state.storages.set('local', {
    id: 'local',
    type: 'dir',
    content: ['iso', 'vztmpl', 'import', 'snippets', 'backup'],
    shared: false,
    total: 100 * GIB,
  })
  state.storages.set('local-lvm', {
    id: 'local-lvm',
    type: 'lvmthin',
    content: ['images', 'rootdir'],
    shared: false,
    total: 500 * GIB,
  })
  state.storages.set('shared', {
    id: 'shared',
    type: 'nfs',
    content: ['images', 'iso'],
    shared: true,
    total: 2000 * GIB,
  })
  state.storages.set('seeds', { id: 'seeds', type: 'dir', content: ['iso'], shared: false, total: 10 * GIB })
}

const addTemplate = (
  state: State,
  { vmid, node, name, storage }: { vmid: number; node: string; name: string; storage: string },
): void => {
  const { mac, uuid, vmgenid } = freshIdentity()
  const volid = `${storage}:base-${vmid}-disk-0`
  const vm = newVm(vmid, node, {
    name,
    template: '1',
    agent: '1',
    cores: '1',
    memory: '1024',
    scsihw: 'virtio-scsi-single',
    scsi0: `${volid},size=8G`,
    boot: 'order=scsi0',
    net0: `virtio=${mac},bridge=vmbr0,firewall=1`,
    serial0: 'socket',
    ostype: 'l26',
    smbios1: `uuid=${uuid}`,
    vmgenid,
  })
  state.vms.set(vmid, vm)
  const shared = state.storages.get(storage)?.shared
  putVolume(
    state,
    { volid, storage, node: shared ? undefined : node, content: 'images', size: 8 * GIB, vmid, ctime: 0 },
    node,
  )
}

const grantLeast = (state: State, { user, tokenName }: Standard): void => {
  const major = Number(state.version.version.split('.')[0])
  const config = ['Options', 'CPU', 'Memory', 'Disk', 'CDROM', 'Cloudinit', 'Network', 'HWType'].map(
    name => `VM.Config.${name}`,
  )
  const roles: Record<string, [string[], string[]]> = {
    DeputyTemplate: [
      ['VM.Clone', 'VM.Audit'],
      ['/vms/9000', '/vms/9001'],
    ],
    DeputyJobs: [
      ['VM.Allocate', 'VM.Audit', 'VM.PowerMgmt', 'Pool.Audit', ...config, ...agentPrivileges(major)],
      ['/pool/jobs'],
    ],
    DeputyDisks: [
      ['Datastore.AllocateSpace', 'Datastore.Audit'],
      ['/storage/shared', '/storage/local-lvm'],
    ],
    DeputySeeds: [
      ['Datastore.AllocateTemplate', 'Datastore.Audit', 'Datastore.Allocate'],
      ['/storage/seeds'],
    ],
    DeputyNetwork: [['SDN.Use'], ['/sdn/zones/localnetwork/vmbr0']],
  }
  for (const [role, [privileges, paths]] of Object.entries(roles)) {
    state.roles.set(role, new Set(privileges))
    for (const path of paths) {
      for (const who of [user, `${user}!${tokenName}`]) state.acl.push({ path, who, role, propagate: true })
    }
  }
}
