import { describe, expect, it } from 'vitest'
import { AppError } from '../../../../src/jobs/errors.ts'
import { createFakeCluster, UPID } from '../../../support/proxmox/fake-cluster.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'

const policy = { allowElevated: true, confirm: 'token' }
/** Calls a tool and answers what it sent besides reads, and what it said. */
const act = async (name: string, args: Record<string, unknown>, own: Record<string, unknown> = {}) => {
  const api = createFakeCluster(own)
  const { call } = proxmoxTools(api, { policy })
  const first = await call(name, args)
  const { data } =
    first.data.status === 'needs_confirmation'
      ? await call(name, { ...args, plan_token: first.data.plan_token })
      : first
  const [sent] = api.sent.filter(({ method }) => method !== 'GET')
  return {
    data,
    sent: sent && `${sent.method} ${sent.path}`,
    params: sent?.params,
    reads: api.sent.filter(({ method }) => method === 'GET'),
  }
}

describe('guests', () => {
  it('are found by their id: node and kind need not be told', async () => {
    expect((await act('proxmox_guest_start', { vmid: 101 })).sent).toBe(
      'POST /nodes/pve2/lxc/101/status/start',
    )
    expect((await act('proxmox_guest_start', { vmid: '100' })).sent).toBe(
      'POST /nodes/pve1/qemu/100/status/start',
    )
    await expect(act('proxmox_guest_start', { vmid: 999 })).rejects.toThrow('No guest 999')
  })

  it('are not looked up for a read that names everything', async () => {
    const { reads } = await act('proxmox_guest_status', { vmid: 100, node: 'pve1', type: 'vm' })
    expect(reads).toHaveLength(1)
  })

  it.each([
    ['512M', '0.5'],
    ['1T', '1024'],
    ['1.5G', '1.5'],
    ['32G', '32'],
    ['8', '8'],
    ['32GiB', '32'],
  ])('of %s get a disk of %s GiB', async (size, gib) => {
    expect(
      (await act('proxmox_create_vm', { node: 'pve1', vmid: 500, disk_size: size, storage: 'lvm' })).params,
    ).toMatchObject({ scsi0: `lvm:${gib}` })
    expect(
      (await act('proxmox_vm_disk', { action: 'add', vmid: 100, disk: 'scsi1', storage: 'lvm', size }))
        .params,
    ).toMatchObject({ scsi1: `lvm:${gib}` })
  })

  it('keep their MAC and all else when a NIC changes', async () => {
    const { params } = await act('proxmox_guest_network', {
      action: 'update',
      vmid: 100,
      net: 'net0',
      model: 'e1000',
      vlan: 7,
    })
    expect(params).toEqual({ net0: 'e1000=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=7' })
    const lxc = {
      'GET /nodes/pve2/lxc/101/config': {
        net0: 'name=eth0,hwaddr=BC:24:11:00:00:09,bridge=vmbr0,ip=dhcp,type=veth',
      },
    }
    const changed = await act(
      'proxmox_guest_network',
      { action: 'update', vmid: 101, net: 'net0', vlan: 7, bridge: 'vnet1', ip: '10.0.0.5/24' },
      lxc,
    )
    expect(changed.params).toEqual({
      net0: 'name=eth0,hwaddr=BC:24:11:00:00:09,bridge=vnet1,ip=10.0.0.5/24,type=veth,tag=7',
    })
  })

  it('cannot be given a second property through one', async () => {
    await expect(
      act(
        'proxmox_guest_network',
        { action: 'update', vmid: 101, net: 'net0', ip: 'dhcp,bridge=vmbr9' },
        { 'GET /nodes/pve2/lxc/101/config': { net0: 'name=eth0' } },
      ),
    ).rejects.toThrow('comma')
    await expect(
      act('proxmox_lxc_mountpoint', {
        action: 'add',
        vmid: 101,
        mp: 'mp0',
        storage: 'lvm',
        size: '1',
        path: '/x,backup=1',
      }),
    ).rejects.toMatchObject({ code: 'invalid' })
  })

  it('are not given a disk where one is', async () => {
    const taken = { 'GET /nodes/pve1/qemu/100/config': { scsi1: 'lvm:vm-100-disk-1,size=8G' } }
    await expect(
      act('proxmox_vm_disk', { action: 'add', vmid: 100, disk: 'scsi1', storage: 'lvm', size: '8' }, taken),
    ).rejects.toThrow('in use')
  })

  it('get mount points with a path', async () => {
    const { params } = await act('proxmox_lxc_mountpoint', {
      action: 'add',
      vmid: 101,
      mp: 'mp0',
      storage: 'lvm',
      size: '4G',
      path: '/srv',
    })
    expect(params).toEqual({ mp0: 'lvm:4,mp=/srv' })
  })

  it('move by the words of their kind', async () => {
    expect(
      await act('proxmox_guest_migrate', {
        vmid: 101,
        target: 'pve1',
        online: true,
        'with-local-storage': 'lvm',
      }),
    ).toMatchObject({ params: { target: 'pve1', restart: true, 'target-storage': 'lvm' } })
    expect(
      await act('proxmox_guest_migrate', {
        vmid: 100,
        target: 'pve2',
        online: true,
        'with-local-storage': 'lvm',
      }),
    ).toMatchObject({
      params: { target: 'pve2', online: true, targetstorage: 'lvm', 'with-local-disks': true },
    })
    expect(await act('proxmox_guest_disk_move', { vmid: 101, disk: 'rootfs', storage: 'lvm' })).toMatchObject(
      {
        sent: 'POST /nodes/pve2/lxc/101/move_volume',
        params: { volume: 'rootfs', storage: 'lvm', delete: true },
      },
    )
  })

  it('are cloned with every option', async () => {
    const { params } = await act('proxmox_guest_clone', {
      vmid: 100,
      newid: 900,
      name: 'copy',
      full: true,
      storage: 'lvm',
      target: 'pve2',
    })
    expect(params).toEqual({ newid: 900, name: 'copy', full: true, storage: 'lvm', target: 'pve2' })
  })

  it('are restored by the words of their kind', async () => {
    const archive = 'local:backup/vzdump-qemu-500-2026_01_01-00_00_00.vma.zst'
    const vm = await act('proxmox_backup', {
      action: 'restore',
      type: 'vm',
      node: 'pve1',
      vmid: 500,
      archive,
    })
    expect(vm).toMatchObject({ sent: 'POST /nodes/pve1/qemu', params: { vmid: 500, archive } })
    const lxc = await act('proxmox_backup', {
      action: 'restore',
      type: 'lxc',
      node: 'pve1',
      vmid: 500,
      archive,
    })
    expect(lxc).toMatchObject({
      sent: 'POST /nodes/pve1/lxc',
      params: { vmid: 500, ostemplate: archive, restore: true },
    })
    const over = proxmoxTools(createFakeCluster(), { policy }).call('proxmox_backup', {
      action: 'restore',
      type: 'vm',
      node: 'pve1',
      vmid: 500,
      archive,
      force: true,
    })
    expect((await over).data).toMatchObject({ status: 'needs_confirmation' })
  })

  it('take any configuration, but not through the back door', async () => {
    const { params } = await act('proxmox_guest_config_update', {
      vmid: 100,
      config: '{"onboot":1,"tags":"a;b"}',
      delete: 'description',
    })
    expect(params).toEqual({ onboot: 1, tags: 'a;b', delete: 'description' })
    await expect(act('proxmox_guest_config_update', { vmid: 100, config: { vmid: 5 } })).rejects.toThrow(
      "'vmid' as a separate argument, not inside 'config'",
    )
    await expect(act('proxmox_guest_config_update', { vmid: 100, config: { 'a&b': 5 } })).rejects.toThrow(
      'Invalid parameter name',
    )
    const keys = await act('proxmox_guest_config_update', {
      vmid: 100,
      config: { sshkeys: 'ssh-ed25519 AAAA me@x' },
    })
    expect(keys.params?.sshkeys).toBe('ssh-ed25519%20AAAA%20me%40x')
  })
})

describe('firewall rules', () => {
  it.each([
    ['proxmox_cluster_firewall_rule', { action: 'create', rule_action: 'ACCEPT', type: 'in' }],
    ['proxmox_cluster_firewall', { action: 'update_options' }],
  ])('of %s are switched on and off by a boolean or a number', async (name, args) => {
    for (const [enable, sent] of [
      [true, true],
      [1, true],
      ['0', false],
      [false, false],
    ])
      expect((await act(name, { ...args, enable })).params).toMatchObject({ enable: sent })
  })
})

describe('the guest agent', () => {
  it('gets a list of words and answers text as it was', async () => {
    const { data, params } = await act('proxmox_agent_exec', {
      action: 'exec',
      vmid: 100,
      command: 'sh',
      args: ['-c', 'echo'],
    })
    expect(params).toEqual({ command: ['sh', '-c', 'echo'] })
    expect(data).toEqual({ pid: 42, exited: true, exitcode: 0, stdout: 'hällo\n', stderr: '' })
  })

  it('is never sent what hangs it', async () => {
    await expect(
      act('proxmox_agent_exec', { action: 'exec', vmid: 100, command: 'echo', args: ['€'] }),
    ).rejects.toThrow('ASCII')
    await expect(
      act('proxmox_agent_exec', { action: 'exec', vmid: 100, command: 'cat', 'input-data': 'ü' }),
    ).rejects.toThrow('ASCII')
  })

  it('reports a killed process as killed', async () => {
    const { data } = await act(
      'proxmox_agent_exec',
      { action: 'exec', vmid: 100, command: 'x' },
      { 'GET /nodes/pve1/qemu/100/agent/exec-status': { exited: 1, signal: 9 } },
    )
    expect(data).toMatchObject({ exited: true, exitcode: null, killed: true, signal: 9 })
  })

  it('says so when a process goes on', async () => {
    const { data } = await act(
      'proxmox_agent_exec',
      { action: 'exec', vmid: 100, command: 'x', timeout: 1 },
      { 'GET /nodes/pve1/qemu/100/agent/exec-status': { exited: 0 } },
    )
    expect(data).toMatchObject({ pid: 42, exited: false, next: expect.stringContaining('pid') })
  })

  it('writes files byte for byte', async () => {
    const { params } = await act('proxmox_agent_file', {
      action: 'write',
      vmid: 100,
      file: '/tmp/x',
      content: 'grüße €',
    })
    expect(params).toEqual({
      file: '/tmp/x',
      content: Buffer.from('grüße €').toString('base64'),
      encode: false,
    })
    await expect(
      act('proxmox_agent_file', { action: 'write', vmid: 100, file: '/tmp/x', content: 'ü'.repeat(24_000) }),
    ).rejects.toMatchObject({ code: 'too_large' })
    expect(
      (await act('proxmox_agent_file', { action: 'read', vmid: 100, file: '/tmp/x' })).data,
    ).toMatchObject({ content: 'hällo\n', bytes: 7 })
  })
})

describe('tasks', () => {
  it('are ok only when they ended well', async () => {
    expect((await act('proxmox_guest_start', { vmid: 100 })).data).toEqual({
      upid: UPID,
      state: 'ok',
      exitstatus: 'OK',
    })
    expect((await act('proxmox_guest_start', { vmid: 100, wait: 0 })).data).toMatchObject({
      upid: UPID,
      state: 'running',
      next: expect.stringContaining(UPID),
    })
  })

  it('are announced to a client that wants to know', async () => {
    const told: string[] = []
    const { call } = proxmoxTools(createFakeCluster(), { policy })
    await call('proxmox_guest_start', { vmid: 100 }, { progress: message => told.push(message) })
    expect(told).toEqual(['Waiting for the task qmstart on pve1.'])
  })

  it('fail with their own words', async () => {
    const api = createFakeCluster()
    const failing = {
      ...api,
      waitTask: async () => {
        throw new AppError('conflict', 'The Proxmox VE task qmstart failed: no such bridge', {
          details: { upid: UPID, exitStatus: 'x', log: ['bridge vmbr9 does not exist'] },
        })
      },
    }
    await expect(
      proxmoxTools(failing, { policy }).call('proxmox_guest_start', { vmid: 100 }),
    ).rejects.toThrow(/no such bridge[\s\S]*vmbr9/)
  })

  it('that outlast the wait are handles, not errors', async () => {
    const api = createFakeCluster()
    const slow = {
      ...api,
      waitTask: async () => {
        throw new AppError('timeout', 'not in time', { details: { upid: UPID } })
      },
    }
    expect(
      (await proxmoxTools(slow, { policy }).call('proxmox_guest_start', { vmid: 100 })).data,
    ).toMatchObject({ state: 'running', upid: UPID })
  })

  it('of a token are followed by their id alone', async () => {
    expect((await act('proxmox_node_task', { action: 'get', upid: UPID })).data).toMatchObject({
      node: 'pve1',
      state: 'ok',
      type: 'qmstart',
      log: ['starting', 'TASK OK'],
    })
    expect((await act('proxmox_node_task', { action: 'wait', upid: UPID })).data).toMatchObject({
      state: 'ok',
    })
    expect(
      (await act('proxmox_api_call', { path: `nodes/pve1/tasks/${UPID}/status`, wait: 5 })).data,
    ).toMatchObject({ state: 'ok' })
  })
})

describe('nodes', () => {
  it('keep the rest of /etc/hosts', async () => {
    const { params, data } = await act('proxmox_node_config', {
      action: 'set_hosts',
      node: 'pve1',
      ip: '192.0.2.1',
      name: 'pve1.new pve1',
      comment: 'me',
    })
    expect(params).toEqual({ data: '127.0.0.1 localhost\n# me\n192.0.2.1 pve1.new pve1\n', digest: 'ab12' })
    expect(data).toMatchObject({ replaced: '192.0.2.1 pve1.lab pve1' })
    const { data: hosts } = await act('proxmox_node_config', { action: 'get_hosts', node: 'pve1' })
    expect(hosts.rows).toEqual([
      ['127.0.0.1', 'localhost'],
      ['192.0.2.1', 'pve1.lab pve1'],
    ])
  })

  it('and the cluster drop options without setting any', async () => {
    const { sent, params } = await act('proxmox_cluster', { action: 'update_options', delete: 'keyboard' })
    expect(sent).toBe('PUT /cluster/options')
    expect(params).toEqual({ delete: 'keyboard' })
  })

  it('keep the DNS servers that were not named', async () => {
    expect(
      (await act('proxmox_node_config', { action: 'set_dns', node: 'pve1', dns2: '192.0.2.54' })).params,
    ).toEqual({ search: 'lab', dns1: '192.0.2.53', dns2: '192.0.2.54' })
  })

  it('tell honestly that nothing can be upgraded by API', async () => {
    const { data, sent } = await act(
      'proxmox_apt',
      { action: 'upgrade', node: 'pve1' },
      { 'GET /nodes/pve1/apt/update': [{ Package: 'pve-manager', OldVersion: '9.1.1', Version: '9.1.2' }] },
    )
    expect(sent).toBeUndefined()
    expect(data).toMatchObject({
      upgraded: false,
      pending: 1,
      packages: ['pve-manager 9.1.1 → 9.1.2'],
      how: expect.stringContaining('apt-get dist-upgrade'),
    })
  })

  it('keep an interface as it was but for what changes', async () => {
    const { params } = await act('proxmox_node_network_iface', {
      action: 'update',
      node: 'pve1',
      iface: 'vmbr0',
      comment: 'uplink',
    })
    expect(params).toEqual({
      type: 'bridge',
      autostart: 1,
      cidr: '192.0.2.1/24',
      bridge_ports: 'eno1',
      comments: 'uplink',
    })
  })

  it('show the newest lines of their logs', async () => {
    const log = { 'GET /nodes/pve1/syslog': Array.from({ length: 400 }, (_, n) => ({ n, t: `line ${n}` })) }
    const { data, reads } = await act(
      'proxmox_node_log',
      { action: 'syslog', node: 'pve1', service: 'sshd', limit: 2 },
      log,
    )
    expect(data.lines).toEqual(['line 398', 'line 399'])
    expect(reads[0]?.params).toEqual({ service: 'sshd', limit: 5000 })
    expect((await act('proxmox_node_log', { action: 'syslog', node: 'pve1' })).reads[0]?.path).toBe(
      '/nodes/pve1/journal',
    )
    expect(
      (await act('proxmox_node_task', { action: 'list', node: 'pve1', limit: 5 })).reads[0]?.params,
    ).toEqual({ limit: 500 })
  })

  it('show logs as lines', async () => {
    expect(
      (
        await act(
          'proxmox_node_log',
          { action: 'journal', node: 'pve1' },
          { 'GET /nodes/pve1/journal': ['a', 'b'] },
        )
      ).data,
    ).toMatchObject({ lines: ['a', 'b'] })
  })
})

describe('the cluster', () => {
  it('is healthy only with quorum', async () => {
    expect((await act('proxmox_cluster', { action: 'status' })).data).toMatchObject({
      healthy: true,
      quorate: true,
    })
    const split = [
      { type: 'cluster', name: 'lab', quorate: 0 },
      { type: 'node', name: 'pve1', online: 1 },
    ]
    expect(
      (await act('proxmox_cluster', { action: 'status' }, { 'GET /cluster/status': split })).data,
    ).toMatchObject({ healthy: false, quorate: false })
  })

  it('addresses subnets by vnet and CIDR', async () => {
    expect(
      (
        await act('proxmox_sdn_subnet', {
          action: 'update',
          vnet: 'vnet1',
          subnet: '10.0.0.0/24',
          snat: true,
        })
      ).sent,
    ).toBe('PUT /cluster/sdn/vnets/vnet1/subnets/zone1-10.0.0.0-24')
    expect(
      (await act('proxmox_sdn_subnet', { action: 'create', vnet: 'vnet1', subnet: '10.0.0.0/24' })).params,
    ).toEqual({ type: 'subnet', subnet: '10.0.0.0/24' })
    expect((await act('proxmox_sdn', { action: 'apply' })).sent).toBe('PUT /cluster/sdn')
  })

  it('finds the vnet of a subnet', async () => {
    const { sent } = await act('proxmox_sdn_subnet', { action: 'delete', subnet: '10.0.0.0/24' })
    expect(sent).toBe('DELETE /cluster/sdn/vnets/vnet1/subnets/zone1-10.0.0.0-24')
    await expect(act('proxmox_sdn_subnet', { action: 'get', subnet: '10.9.0.0/24' })).rejects.toThrow(
      'No subnet',
    )
  })

  it('shows OSDs as a list', async () => {
    expect((await act('proxmox_ceph_osd', { action: 'list', node: 'pve1' })).data).toMatchObject({
      columns: ['id', 'name', 'host', 'type', 'status'],
      rows: [[0, 'osd.0', 'pve1', 'osd', 'up']],
    })
  })

  it('prunes by what is kept, and looks first when asked', async () => {
    const args = { action: 'prune', node: 'pve1', storage: 'local', 'keep-last': 3, 'keep-daily': 7 }
    expect(await act('proxmox_storage_content', args)).toMatchObject({
      sent: 'DELETE /nodes/pve1/storage/local/prunebackups',
      params: { 'prune-backups': 'keep-last=3,keep-daily=7' },
    })
    const dry = await act(
      'proxmox_storage_content',
      { ...args, 'dry-run': true },
      { 'GET /nodes/pve1/storage/local/prunebackups': [{ volid: 'x', mark: 'remove' }] },
    )
    expect(dry.sent).toBeUndefined()
    expect(dry.data).toMatchObject({ rows: [['x', 'remove']] })
  })

  it('names a download after its URL', async () => {
    expect(
      (
        await act('proxmox_storage_content', {
          action: 'download_url',
          node: 'pve1',
          storage: 'local',
          content: 'iso',
          url: 'https://x.org/a/debian%2013.iso?y=1',
        })
      ).params,
    ).toMatchObject({ filename: 'debian_13.iso' })
  })

  it('refuses files from anywhere', async () => {
    await expect(
      act('proxmox_storage_content', {
        action: 'upload',
        node: 'pve1',
        storage: 'local',
        content: 'iso',
        filename: 'x.iso',
        file: '/etc/shadow',
      }),
    ).rejects.toThrow('is not allowed')
  })

  it('tells the sender of mail as Proxmox wants it', async () => {
    const args = {
      action: 'create',
      target_type: 'smtp',
      name: 'mail',
      server: 'mx',
      from: 'a@b.c',
      mailto: ['x@y.z'],
    }
    expect((await act('proxmox_notification', args)).params).toMatchObject({
      'from-address': 'a@b.c',
      mailto: ['x@y.z'],
    })
    await expect(act('proxmox_notification', { ...args, token: 'x' })).rejects.toThrow(
      "does not take 'token'",
    )
    await expect(
      act('proxmox_notification', { action: 'create', target_type: 'smtp', name: 'm', server: 'mx' }),
    ).rejects.toThrow("needs 'from'")
  })
})

describe('arguments as proxmox-mcp named them', () => {
  it('take operation for action, and get where there is only one action', async () => {
    const add = { operation: 'add', vmid: 100, disk: 'scsi1', storage: 'lvm', size: '8' }
    expect((await act('proxmox_vm_disk', add)).sent).toBe('POST /nodes/pve1/qemu/100/config')
    const config = { action: 'get', node: 'pve1', vmid: 100, type: 'vm' }
    expect((await act('proxmox_guest_config', config)).reads).toMatchObject([
      { path: '/nodes/pve1/qemu/100/config' },
    ])
    await expect(act('proxmox_guest_config', { ...config, action: 'set' })).rejects.toThrow("'action'")
  })

  it('take rare parameters at the top level', async () => {
    const job = { action: 'create', starttime: '02:00', dow: 'sat', storage: 'local', all: true }
    const rare = { ionice: 7, lockwait: 10, maxfiles: 2, quiet: true, zstd: 4, 'exclude-path': '/tmp' }
    const { params } = await act('proxmox_cluster_backup_job', {
      ...job,
      ...rare,
      options: { tmpdir: '/var/tmp' },
    })
    expect(params).toMatchObject({ ...rare, tmpdir: '/var/tmp' })
    expect(
      (await act('proxmox_storage_config', { action: 'update', storage: 'nas', smbversion: '3.0' })).params,
    ).toEqual({ smbversion: '3.0' })
    expect(
      (await act('proxmox_domain', { action: 'create', realm: 'corp', type: 'ldap', secure: true })).params,
    ).toMatchObject({ secure: true })
  })
})

it.each([
  [
    'proxmox_guest_pause',
    { vmid: 101, todisk: true },
    "'todisk' is for VMs only, and this guest is a container.",
  ],
  ['proxmox_guest_resize', { vmid: 101, sockets: 2 }, "'sockets' is for VMs only"],
  [
    'proxmox_guest_resize',
    { vmid: 100, swap: 512 },
    "'swap' is for containers only, and this guest is a VM.",
  ],
  [
    'proxmox_guest_snapshot',
    { action: 'create', vmid: 101, snapname: 'ab', vmstate: true },
    "'vmstate' is for VMs",
  ],
])('%s %j is refused before it is sent', async (name, args, message) => {
  await expect(act(name, args)).rejects.toThrow(message)
})

it.each([
  ['proxmox_pool', { action: 'update', poolid: 'web' }],
  ['proxmox_cluster_backup_job', { action: 'update', id: 'job1' }],
  ['proxmox_guest_resize', { vmid: 100 }],
  ['proxmox_sdn_vnet', { action: 'update', vnet: 'vnet1', digest: 'ab12' }],
  ['proxmox_node_config', { action: 'set_dns', node: 'pve1' }],
])('%s %j changes nothing, which is an error', async (name, args) => {
  await expect(act(name, args)).rejects.toThrow(/nothing to change|Nothing to change|needs/)
})

it.each(['get', 'Get', 'GET'])('proxmox_api_call takes the method %s', async method => {
  const { reads } = await act('proxmox_api_call', { path: 'nodes/pve1/status', method })
  expect(reads).toMatchObject([{ path: '/nodes/pve1/status' }])
})
