import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Elicitation } from '../../../../src/mcp/tool.ts'
import { createFakeCluster } from '../../../support/proxmox/fake-cluster.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'

const raw = 'proxmox_api_call'
const writes = (api: ReturnType<typeof createFakeCluster>) =>
  api.sent.filter(({ method }) => method !== 'GET')

describe('one gate for raw and curated calls', () => {
  it.each([
    ['POST', 'nodes/pve2/status', { command: 'reboot' }],
    ['DELETE', 'nodes/pve2/lxc/101', {}],
    ['PUT', 'nodes/pve1/disks/wipedisk', { disk: '/dev/sda' }],
    ['POST', 'nodes/pve2/stopall', {}],
    ['POST', 'nodes/pve1/qemu', { vmid: 500, archive: 'x', force: 1 }],
    ['PUT', 'nodes/pve1/qemu/100/config', { delete: 'unused0' }],
    ['PUT', 'nodes/pve1/qemu/100/unlink', { idlist: 'scsi1', force: true }],
    ['PUT', 'access/acl', { path: '/', roles: 'Administrator', delete: '1' }],
    ['POST', 'nodes/pve1/execute', { commands: '[]' }],
    ['POST', 'nodes/pve1/vncshell', {}],
  ])('%s %s needs the user', async (method, path, data) => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, { policy: { allowElevated: true, protectedTags: [] } })
    expect((await call(raw, { method, path, data })).data).toMatchObject({
      status: 'needs_confirmation',
      done: false,
    })
    expect(writes(api)).toEqual([])
  })

  it.each([
    'nodes/pve1/../access',
    '/api2/json/../x',
    'nodes//pve1',
    'nodes/pve1?x=1',
    'nodes/pve1#',
    'nodes/%2e%2e/x',
    'nodes/pve1/\n',
  ])('the raw path %j is refused', async path => {
    const api = createFakeCluster()
    await expect(proxmoxTools(api).call(raw, { path })).rejects.toMatchObject({ code: 'invalid' })
    expect(api.sent).toEqual([])
  })

  it.each([{ a: { b: 1 } }, { a: null }, { a: [{}] }, { a: 'x\0y' }, { 'a&b': 1 }])(
    'parameters %j are refused',
    async data => {
      const api = createFakeCluster()
      const { call } = proxmoxTools(api, { policy: { allowElevated: true } })
      await expect(call(raw, { path: 'pools', method: 'POST', data })).rejects.toMatchObject({
        code: 'invalid',
      })
      expect(api.sent).toEqual([])
    },
  )

  it('takes paths as people write them', async () => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api)
    for (const path of [
      'nodes',
      '/nodes/',
      '/api2/json/nodes',
      'nodes/pve1/storage/local/content/local:iso/debian.iso',
    ])
      await call(raw, { path })
    expect(api.sent.map(({ path }) => path)).toEqual([
      '/nodes',
      '/nodes',
      '/nodes',
      '/nodes/pve1/storage/local/content/local%3Aiso%2Fdebian.iso',
    ])
  })

  it.each([
    ['/nodes/pve1/qemu/100/agent/file-read', 'GET'],
    ['/nodes/pve1/storage/pbs/file-restore/download', 'GET'],
    ['/nodes/pve1/qemu/100/agent/exec-status', 'GET'],
  ])('%s is no free read', async (path, method) => {
    await expect(proxmoxTools(createFakeCluster()).call(raw, { path, method })).rejects.toMatchObject({
      code: 'denied',
    })
  })
})

describe('guests that must not be touched', () => {
  const policy = { allowElevated: true, confirm: 'token', protectedVmids: ['101'], protectedPools: ['web'] }

  it.each([
    ['by tag', 'proxmox_guest_stop', { vmid: 102 }, 'tag protected'],
    ['by VMID', 'proxmox_guest_stop', { vmid: 101 }, 'VMID'],
    ['by pool', 'proxmox_guest_stop', { vmid: 100 }, 'pool web'],
    ['of a job', 'proxmox_guest_delete', { vmid: 100000 }, 'machine of a job'],
    ['by an id that a job may get', 'proxmox_guest_clone', { vmid: 100, newid: 150000 }, 'machine of a job'],
    [
      'by its disk',
      'proxmox_storage_content',
      { action: 'delete', node: 'pve1', storage: 'lvm', volume: 'lvm:vm-102-disk-0' },
      'protected',
    ],
    [
      'by its backup',
      'proxmox_backup',
      {
        action: 'delete',
        node: 'pve1',
        storage: 'local',
        volume: 'local:backup/vzdump-qemu-102-2026_01_01-00_00_00.vma.zst',
      },
      'protected',
    ],
    ['by its node', 'proxmox_node_power', { action: 'reboot', node: 'pve1' }, 'protected'],
    ['with all others', 'proxmox_node_bulk', { action: 'stop_all', node: 'pve1' }, 'protected'],
    ['in a list', 'proxmox_node_bulk', { action: 'stop_all', node: 'pve1', vms: '103,102' }, 'protected'],
    ['by HA', 'proxmox_ha_resource', { action: 'delete', sid: 'vm:102' }, 'protected'],
    ['by a pool change', 'proxmox_pool', { action: 'update', poolid: 'x', vms: '102' }, 'protected'],
  ])('%s: %s', async (_, tool, args, why) => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, { policy })
    await expect(call(tool, args)).rejects.toThrow(why)
    expect(writes(api)).toEqual([])
  })

  it('may be looked at, cloned, snapshot and backed up', async () => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, { policy: { allowElevated: true } })
    await call('proxmox_guest_status', { vmid: 102 })
    await call('proxmox_guest_clone', { vmid: 102, newid: 900 })
    await call('proxmox_guest_snapshot', { action: 'create', vmid: 102, snapname: 'safe' })
    await call('proxmox_backup', { action: 'create', vmid: 102 })
    expect(writes(api)).toHaveLength(3)
  })
})

describe('rules of the configuration', () => {
  it.each([
    ['tool', { tools: ['proxmox_guest_*'] }],
    ['node', { nodes: ['pve1'] }],
    ['VMID range', { vmids: ['100-110'] }],
    ['pool', { pools: ['web'] }],
    ['tag', { tags: ['prod'] }],
    ['tier', { tiers: ['elevated'] }],
  ])('deny by %s', async (_, match) => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, {
      policy: { allowElevated: true, rules: [{ effect: 'deny', ...match }] },
    })
    await expect(call('proxmox_guest_start', { vmid: 100 })).rejects.toThrow(
      'A rule of the configuration forbids',
    )
    await call('proxmox_cluster_firewall', { action: 'get_options' })
    expect(writes(api)).toEqual([])
  })

  it('deny by action, for the raw call by method', async () => {
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { allowElevated: true, rules: [{ effect: 'deny', actions: ['create', 'POST'] }] },
    })
    await expect(call('proxmox_pool', { action: 'create', poolid: 'x' })).rejects.toThrow('forbids')
    await expect(call(raw, { method: 'POST', path: 'pools', data: { poolid: 'x' } })).rejects.toThrow(
      'forbids',
    )
  })

  it('deny a tool however the same is asked for', async () => {
    const rules = [
      { effect: 'deny', tools: ['proxmox_guest_delete', 'proxmox_guest_network'] },
      { effect: 'deny', tools: ['proxmox_node_power'], actions: ['reboot'] },
    ]
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { allowElevated: true, confirm: 'token', rules },
    })
    await expect(call('proxmox_guest_delete', { vmid: 101 })).rejects.toThrow('forbids')
    await expect(call(raw, { method: 'DELETE', path: 'nodes/pve2/lxc/101' })).rejects.toThrow('forbids')
    await expect(call('proxmox_ct_destroy', { vmid: 101, confirm: true })).rejects.toThrow('forbids')
    await expect(
      call(raw, { method: 'POST', path: 'nodes/pve2/status', data: { command: 'reboot' } }),
    ).rejects.toThrow('forbids')
    // The same request has many purposes; a tool is known by its own.
    expect((await call('proxmox_guest_resize', { vmid: 101, memory: 512 })).data).toEqual({ ok: true })
    const others = [
      { method: 'POST', path: 'nodes/pve2/status', data: { command: 'shutdown' } },
      { method: 'DELETE', path: 'nodes/pve2/network/vmbr9' },
    ]
    for (const other of others)
      expect((await call(raw, other)).data).toMatchObject({ status: 'needs_confirmation' })
  })

  it('allow a tool, not all that could do the same', async () => {
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { rules: [{ effect: 'allow', tools: ['proxmox_guest_start'] }] },
    })
    expect((await call('proxmox_guest_start', { vmid: 100 })).data).toMatchObject({ state: 'ok' })
    await expect(
      call(raw, { method: 'POST', path: 'nodes/pve1/qemu/100/status/start' }),
    ).rejects.toMatchObject({ code: 'denied' })
  })

  it('allow changes of some guests only, where they are off', async () => {
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { rules: [{ effect: 'allow', pools: ['web'] }] },
    })
    expect((await call('proxmox_guest_start', { vmid: 100 })).data).toMatchObject({ state: 'ok' })
    await expect(call('proxmox_guest_start', { vmid: 101 })).rejects.toMatchObject({ code: 'denied' })
    await expect(
      call('proxmox_node_bulk', { action: 'start_all', node: 'pve1', vms: '100,101' }),
    ).rejects.toMatchObject({ code: 'denied' })
  })

  it('ask the user before what they name', async () => {
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { allowElevated: true, confirm: 'token', rules: [{ effect: 'confirm', tags: ['prod'] }] },
    })
    const asked = await call('proxmox_guest_stop', { vmid: 100 })
    expect(asked.data).toMatchObject({ status: 'needs_confirmation' })
    const same = {
      method: 'POST',
      path: 'nodes/pve1/qemu/100/status/stop',
      plan_token: asked.data.plan_token,
    }
    expect((await call(raw, same)).data).toMatchObject({ upid: expect.stringContaining('UPID') })
  })

  it('cannot lift read-only', async () => {
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { readOnly: true, allowElevated: true, rules: [{ effect: 'allow' }] },
    })
    await expect(call('proxmox_guest_start', { vmid: 100 })).rejects.toThrow('read-only')
  })
})

describe('a plan', () => {
  const policy = { allowElevated: true }
  const args = { vmid: 101 }

  it('waits for the user, who approves it where no tool reads: nothing on disk stands for consent', async () => {
    const api = createFakeCluster()
    const { call, service, stateDir } = proxmoxTools(api, { policy })
    const { data } = await call('proxmox_guest_delete', args)
    expect(data).toMatchObject({
      status: 'needs_confirmation',
      plan_id: expect.any(String),
      next: expect.stringContaining(`deputy proxmox approve ${data.plan_id}`),
      plan: { method: 'DELETE', path: '/nodes/pve2/lxc/101' },
      guests: ['Guest 101 (db), stopped, on pve2'],
    })
    expect(readdirSync(stateDir)).toEqual(['audit.jsonl'])
    expect(service.approvals.list()).toMatchObject([
      { id: data.plan_id, who: 'mcp:test', summary: 'DELETE /nodes/pve2/lxc/101', approved: false },
    ])
    const again = await call('proxmox_guest_delete', args)
    expect(again.data.plan_id).toBe(data.plan_id)
    await expect(call('proxmox_guest_delete', { ...args, plan_token: data.plan_id })).rejects.toThrow(
      'Plan tokens are not used',
    )
    expect(writes(api)).toEqual([])
    service.approvals.approve(String(data.plan_id))
    expect((await call('proxmox_guest_delete', args)).data).toMatchObject({ state: 'ok' })
    expect((await call('proxmox_guest_delete', args)).data).toMatchObject({ status: 'needs_confirmation' })
  })

  it('that was refused stays refused until it expires, and cannot be approved afterwards', async () => {
    let now = 1_000_000
    const api = createFakeCluster()
    const { call, service } = proxmoxTools(api, { policy, now: () => now })
    const { data } = await call('proxmox_guest_delete', args)
    service.approvals.refuse(String(data.plan_id))
    expect(service.approvals.list()).toEqual([])
    await expect(call('proxmox_guest_delete', args)).rejects.toThrow('The user declined')
    expect(() => service.approvals.approve(String(data.plan_id))).toThrow('No pending call')
    expect(writes(api)).toEqual([])
    now += 11 * 60_000
    expect((await call('proxmox_guest_delete', args)).data).toMatchObject({ status: 'needs_confirmation' })
  })

  it.each([
    ['another guest', { vmid: 103, node: 'pve2', type: 'lxc' }, {}],
    ['other parameters', { ...args, purge: true }, {}],
    ['another client', args, { origin: 'mcp:other' }],
  ])('that was approved is not good for %s', async (_, other, context) => {
    const { call, service } = proxmoxTools(createFakeCluster(), { policy })
    const { data } = await call('proxmox_guest_delete', args)
    service.approvals.approve(String(data.plan_id))
    expect((await call('proxmox_guest_delete', other, context)).data).toMatchObject({
      status: 'needs_confirmation',
    })
  })

  it('that was approved is good for minutes only, and so is the question', async () => {
    let now = 1_000_000
    const { call, service } = proxmoxTools(createFakeCluster(), { policy, now: () => now })
    const { data } = await call('proxmox_guest_delete', args)
    now += 11 * 60_000
    expect(() => service.approvals.approve(String(data.plan_id))).toThrow('No pending call')
    const next = await call('proxmox_guest_delete', args)
    service.approvals.approve(String(next.data.plan_id))
    now += 11 * 60_000
    expect((await call('proxmox_guest_delete', args)).data).toMatchObject({ status: 'needs_confirmation' })
  })

  it.each([
    ['another guest', { vmid: 103, node: 'pve2', type: 'lxc' }],
    ['other parameters', { ...args, purge: true }],
  ])('is not good for %s', async (_, other) => {
    const { call } = proxmoxTools(createFakeCluster(), { policy: { ...policy, confirm: 'token' } })
    const { data } = await call('proxmox_guest_delete', args)
    await expect(call('proxmox_guest_delete', { ...other, plan_token: data.plan_token })).rejects.toThrow(
      'not for this exact call',
    )
  })

  it('is not good for another client, nor after it expired, nor when altered', async () => {
    let now = 1_000_000
    const { call } = proxmoxTools(createFakeCluster(), {
      policy: { ...policy, confirm: 'token' },
      now: () => now,
    })
    const token = String((await call('proxmox_guest_delete', args)).data.plan_token)
    await expect(
      call('proxmox_guest_delete', { ...args, plan_token: token }, { origin: 'mcp:other' }),
    ).rejects.toThrow('exact call')
    const [id, expires, mac] = token.split('.')
    const later = `${id}.${(Number.parseInt(expires!, 36) + 1e9).toString(36)}.${mac}`
    await expect(call('proxmox_guest_delete', { ...args, plan_token: later })).rejects.toThrow('exact call')
    now += 11 * 60_000
    await expect(call('proxmox_guest_delete', { ...args, plan_token: token })).rejects.toThrow('expired')
  })

  it('is a question where the client can ask, and the answer holds for that question only', async () => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, { policy })
    const asked = await call('proxmox_guest_delete', args, { elicitation: {} })
    expect(asked.question?.message).toContain('DELETE /nodes/pve2/lxc/101')
    const answer = (action: 'accept' | 'decline' | 'cancel'): Elicitation => ({
      answer: { action, state: asked.question!.state },
    })
    await expect(call('proxmox_guest_delete', args, { elicitation: answer('decline') })).rejects.toThrow(
      'declined',
    )
    await expect(
      call('proxmox_guest_delete', { ...args, purge: true }, { elicitation: answer('accept') }),
    ).rejects.toThrow('exact call')
    expect((await call('proxmox_guest_delete', args, { elicitation: answer('cancel') })).data).toMatchObject({
      plan_id: expect.any(String),
    })
    expect(writes(api)).toEqual([])
    expect((await call('proxmox_guest_delete', args, { elicitation: answer('accept') })).data).toMatchObject({
      state: 'ok',
    })
    await expect(call('proxmox_guest_delete', args, { elicitation: answer('accept') })).rejects.toThrow(
      'used already',
    )
  })
})

describe('the audit log', () => {
  it('tells who did what when with which result, without secrets, to the user alone', async () => {
    const { call, stateDir } = proxmoxTools(createFakeCluster(), { policy: { allowElevated: true } })
    await call('proxmox_user', { action: 'create', userid: 'bob@pve', password: 'hunter2-secret' })
    await call('proxmox_guest_stop', { vmid: 102 }).catch(() => {})
    await call('proxmox_guest_delete', { vmid: 101 })
    await call('proxmox_agent_file', {
      action: 'write',
      vmid: 100,
      file: '/etc/x',
      content: 'top secret text that is rather long indeed',
    })
    const file = join(stateDir, 'audit.jsonl')
    const text = readFileSync(file, 'utf8')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(text).not.toMatch(/hunter2|top secret|dG9wIHNlY3JldA/)
    const lines = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>)
    expect(lines.map(({ event, tool }) => `${event} ${tool}`)).toEqual([
      'started proxmox_user',
      'done proxmox_user',
      'denied proxmox_guest_stop',
      'unconfirmed proxmox_guest_delete',
      'started proxmox_agent_file',
      'done proxmox_agent_file',
    ])
    expect(lines[0]).toMatchObject({
      who: 'mcp:test',
      method: 'POST',
      path: '/access/users',
      tier: 'elevated',
      params: { userid: 'bob@pve', password: '[secret]' },
    })
    expect(new Date(String(lines[0]!.at)).getTime()).toBeGreaterThan(0)
  })

  it('comes first: what cannot be logged is not done', async () => {
    const api = createFakeCluster()
    const { call, service } = proxmoxTools(api, { policy: { allowElevated: true } })
    expect(service.filesDir).toContain('files')
    const { mkdirSync } = await import('node:fs')
    mkdirSync(join(service.filesDir, '..', 'audit.jsonl'), { recursive: true })
    await expect(call('proxmox_pool', { action: 'create', poolid: 'x' })).rejects.toThrow()
    expect(writes(api)).toEqual([])
  })
})

describe('secrets in answers', () => {
  const keep = async (name: string, args: Record<string, unknown>, key: string, answer: unknown) => {
    const { call, stateDir } = proxmoxTools(createFakeCluster({ [key]: answer }), {
      policy: { allowElevated: true, confirm: 'token' },
    })
    const { data } = await call(name, args)
    const dir = join(stateDir, 'secrets')
    const files = existsSync(dir) ? readdirSync(dir).map(file => join(dir, file)) : []
    return { data, files }
  }

  it.each([
    [
      'a token',
      'proxmox_user_token',
      { action: 'create', userid: 'a@pve', tokenid: 'tt' },
      'POST /access/users/a@pve/token/tt',
      { value: 'SECRET-1', 'full-tokenid': 'a@pve!tt', info: { privsep: 1 } },
    ],
    [
      'a ticket',
      'proxmox_console_vnc',
      { vmid: 100 },
      'POST /nodes/pve1/qemu/100/vncproxy',
      { ticket: 'SECRET-1', port: '5900', user: 'a@pve', upid: 'x', cert: 'PEM' },
    ],
    [
      'a SPICE password',
      'proxmox_console_spice',
      { vmid: 100 },
      'POST /nodes/pve1/qemu/100/spiceproxy',
      { password: 'SECRET-1', host: 'pve1', proxy: 'http://x' },
    ],
    [
      'a subscription key',
      raw,
      { path: 'nodes/pve1/subscription' },
      'GET /nodes/pve1/subscription',
      { key: 'SECRET-1', status: 'active' },
    ],
    [
      'DNS credentials',
      raw,
      { path: 'cluster/acme/plugins/cf' },
      'GET /cluster/acme/plugins/cf',
      { plugin: 'cf', data: 'SECRET-1' },
    ],
    [
      'a nested secret',
      raw,
      { path: 'access/tfa/a@pve', method: 'POST', data: { type: 'recovery' } },
      'POST /access/tfa/a@pve',
      { recovery: ['SECRET-1'] },
    ],
    [
      'a hash in cloud-init',
      'proxmox_cloudinit',
      { action: 'dump', vmid: 100, dump_type: 'user' },
      'GET /nodes/pve1/qemu/100/cloudinit/dump',
      '#cloud-config\nuser: root\npassword: SECRET-1\n',
    ],
  ])('%s goes to a file, and the answer names the file', async (_, tool, args, key, answer) => {
    const { data, files } = await keep(tool, args, key, answer)
    expect(JSON.stringify(data)).not.toContain('SECRET-1')
    expect(files).toHaveLength(1)
    expect(data.secret_file).toBe(files[0])
    expect(readFileSync(files[0]!, 'utf8')).toContain('SECRET-1')
    expect(statSync(files[0]!).mode & 0o777).toBe(0o600)
  })

  it('a made password of a container goes to a file', async () => {
    const api = createFakeCluster()
    const { call, stateDir } = proxmoxTools(api, { policy: { allowElevated: true } })
    const { data } = await call('proxmox_create_lxc', { node: 'pve1', ostemplate: 'local:vztmpl/d.tar.zst' })
    const password = String(writes(api)[0]!.params.password)
    expect(password.length).toBeGreaterThan(20)
    expect(JSON.stringify(data)).not.toContain(password)
    expect(readFileSync(String(data.secret_file), 'utf8').trim()).toBe(password)
    expect(readFileSync(join(stateDir, 'audit.jsonl'), 'utf8')).not.toContain(password)
  })

  it('what Proxmox masks itself is no secret', async () => {
    const { data, files } = await keep(
      'proxmox_guest_config',
      { vmid: 100 },
      'GET /nodes/pve1/qemu/100/config',
      { cipassword: '**********', ciuser: 'root' },
    )
    expect(data).toMatchObject({ ciuser: 'root', cipassword: '**********' })
    expect(files).toEqual([])
  })
})

describe('the rate limit', () => {
  it('stops a loop and says when to go on, for that caller only', async () => {
    let now = 0
    const { call } = proxmoxTools(createFakeCluster(), { policy: { callsPerMinute: 60 }, now: () => now })
    for (let i = 0; i < 30; i++) await call('list_nodes', {})
    await expect(call('list_nodes', {})).rejects.toMatchObject({
      code: 'rate_limited',
      retryable: true,
      message: 'Proxmox rate limit reached: 30 calls at once, then 60 a minute.',
      hint: expect.stringContaining('1 s'),
    })
    await call('list_nodes', {}, { origin: 'mcp:other' })
    now += 1000
    await call('list_nodes', {})
    await expect(call('list_nodes', {})).rejects.toMatchObject({ code: 'rate_limited' })
  })
})
