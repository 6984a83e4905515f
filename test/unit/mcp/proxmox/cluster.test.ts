import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ALL_WAYS, type Connected, connect, type Era, type Wire } from '../../../support/mcp/clients.ts'
import { agentGuests } from '../../../support/proxmox/agent-guests.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'
import { newVm } from '../../../support/pve/state.ts'
import { type Cluster, startCluster } from '../../../support/pve.ts'

/** Real clients of the official SDK, the real Proxmox client, and an emulated cluster over HTTPS. */
let cluster: Cluster
const guests = agentGuests()
beforeAll(async () => {
  cluster = await startCluster({ guests })
})
afterAll(async () => {
  guests.close()
  await cluster.close()
})

describe('/etc/hosts of a node', () => {
  const set = async (more: object) => {
    await using talk = await open(ALL_WAYS[0]!)
    const { text, failed, data } = await call(talk.session, 'proxmox_node_config', {
      action: 'set_hosts',
      node: 'pve1',
      ...more,
    })
    expect(failed, text).toBe(false)
    return data
  }
  const file = () => cluster.emulator.state.nodes.get('pve1')!

  it('takes a comment, once, and tells it', async () => {
    file().hosts = '127.0.0.1 localhost\n'
    await set({ ip: '192.0.2.7', name: 'seven', comment: 'the seventh' })
    await set({ ip: '192.0.2.7', name: 'seven.lab', comment: 'the seventh' })
    expect(file().hosts).toBe('127.0.0.1 localhost\n# the seventh\n192.0.2.7 seven.lab\n')
    await using talk = await open(ALL_WAYS[0]!)
    const told = await call(talk.session, 'proxmox_node_config', { action: 'get_hosts', node: 'pve1' })
    expect(told.data.rows).toContainEqual(['192.0.2.7', 'seven.lab', 'the seventh'])
  })

  it('is changed although it has comments behind addresses, which are kept', async () => {
    file().hosts = '# head\n127.0.0.1 localhost # loop\n\n192.0.2.1 pve1\n'
    expect(await set({ ip: '192.0.2.1', name: 'pve1.lab pve1' })).toMatchObject({ comments_moved: 1 })
    expect(file().hosts).toBe('# head\n# loop\n127.0.0.1 localhost\n\n192.0.2.1 pve1.lab pve1\n')
  })
})

type Answers = 'accept' | 'decline' | 'cancel' | 'none'

const open = async (
  way: { wire: Wire; era: Era },
  {
    answer = 'none' as Answers,
    policy = {} as Record<string, unknown>,
    toolsets = ['default', 'proxmox-all'],
  } = {},
) => {
  const { toolsets: more, stateDir } = proxmoxTools(cluster.root(), {
    policy: { allowElevated: true, ...policy },
  })
  const session = await connect({
    ...way,
    more,
    selection: { toolsets },
    client: answer === 'none' ? {} : { capabilities: { elicitation: { form: {} } } },
  })
  const questions: string[] = []
  if (answer !== 'none') {
    session.client.setRequestHandler('elicitation/create', async request => {
      questions.push(String(request.params.message))
      return answer === 'accept'
        ? { action: 'accept' as const, content: { confirm: true } }
        : { action: answer }
    })
  }
  return { session, questions, stateDir, [Symbol.asyncDispose]: () => session[Symbol.asyncDispose]() }
}

const call = async ({ client }: Connected, name: string, args: Record<string, unknown>) => {
  const result = await client.callTool({ name, arguments: args })
  const text = (result.content as { text?: string }[])[0]?.text ?? ''
  return {
    failed: result.isError === true,
    text,
    data: (result.structuredContent ?? {}) as Record<string, unknown>,
  }
}

describe.each(ALL_WAYS)('over $wire, $era', way => {
  it('a guest is cloned, configured, snapshot and destroyed with the consent of the user', async () => {
    await using talk = await open(way, { answer: 'accept' })
    const { session, questions } = talk
    const newid = 200 + ALL_WAYS.indexOf(way)
    const cloned = await call(session, 'proxmox_guest_clone', { vmid: 9000, newid, name: 'web' })
    expect(cloned, cloned.text).toMatchObject({ failed: false, data: { state: 'ok' } })
    await call(session, 'proxmox_guest_config_update', {
      vmid: newid,
      node: 'pve1',
      type: 'vm',
      config: { tags: 'web', cores: 2 },
    })
    const config = await call(session, 'proxmox_guest_config', { vmid: newid, node: 'pve1', type: 'vm' })
    expect(config.data).toMatchObject({ name: 'web', tags: 'web' })
    const snap = await call(session, 'proxmox_guest_snapshot', {
      action: 'create',
      vmid: newid,
      snapname: 'before',
    })
    expect(snap, snap.text).toMatchObject({ failed: false, data: { state: 'ok' } })
    expect(questions).toEqual([])
    const gone = await call(session, 'proxmox_guest_delete', { vmid: newid, purge: true })
    expect(gone, gone.text).toMatchObject({ failed: false, data: { state: 'ok' } })
    expect(questions).toHaveLength(1)
    expect(questions[0]).toContain(`DELETE /nodes/pve1/qemu/${newid}`)
    expect(cluster.emulator.state.vms.has(newid)).toBe(false)
  })

  it('a user who declines is obeyed', async () => {
    await using talk = await open(way, { answer: 'decline' })
    const refused = await call(talk.session, 'proxmox_guest_delete', { vmid: 9001 })
    expect(refused).toMatchObject({ failed: true, text: expect.stringContaining('declined') })
    expect(cluster.emulator.state.vms.has(9001)).toBe(true)
  })

  it('a headless client that cancels, or cannot ask, gets a plan instead', async () => {
    for (const answer of ['cancel', 'none'] as const) {
      await using talk = await open(way, { answer })
      const plan = await call(talk.session, 'proxmox_guest_delete', { vmid: 9001 })
      expect(plan.data).toMatchObject({
        status: 'needs_confirmation',
        plan_id: expect.any(String),
        plan: { path: '/nodes/pve1/qemu/9001' },
      })
    }
  })
})

describe('the tools of every cluster', () => {
  const way = { wire: 'stdio', era: 'modern' } as const

  it('find, describe and call any operation of the host', async () => {
    await using talk = await open(way, { toolsets: ['proxmox'] })
    const found = await call(talk.session, 'proxmox_api_search', { query: 'clone' })
    expect(found.data.operations).toEqual(
      expect.arrayContaining([expect.stringContaining('POST /nodes/{node}/qemu/{vmid}/clone')]),
    )
    const described = await call(talk.session, 'proxmox_api_describe', {
      path: 'nodes/pve1/qemu/100/clone',
      method: 'post',
    })
    expect(described.data).toMatchObject({
      operation: 'POST /nodes/{node}/qemu/{vmid}/clone',
      tier: 'elevated',
    })
    expect(JSON.stringify(described.data.required)).toContain('newid')
    const bad = await call(talk.session, 'proxmox_api_call', {
      path: 'nodes/pve1/qemu/9000/clone',
      method: 'POST',
      data: { newid: 'many' },
    })
    expect(bad).toMatchObject({ failed: true, text: expect.stringContaining("'newid'") })
    const clone = await call(talk.session, 'proxmox_api_call', {
      path: 'nodes/pve1/qemu/9000/clone',
      method: 'POST',
      data: { newid: 300 },
      wait: 20,
    })
    expect(clone.data).toMatchObject({ state: 'ok' })
    expect(cluster.emulator.state.vms.has(300)).toBe(true)
  })

  it('list nodes, and a thousand guests with one request', async () => {
    for (let vmid = 1000; vmid < 2000; vmid++)
      cluster.emulator.state.vms.set(vmid, newVm(vmid, 'pve1', { name: `guest-${vmid}` }))
    await using talk = await open(way, { toolsets: ['proxmox'] })
    expect((await call(talk.session, 'list_nodes', {})).data.rows).toHaveLength(2)
    const before = cluster.emulator.requests.length
    const page = await call(talk.session, 'get_cluster_resources', {
      type: 'vm',
      filter: 'vmid>=1000 vmid<2000',
    })
    expect(page.data.total).toBe(1000)
    expect(
      cluster.emulator.requests.slice(before).filter(line => line.includes('/cluster/resources')),
    ).toHaveLength(1)
    expect(cluster.emulator.requests.length - before).toBeLessThanOrEqual(2)
    expect(page.text.length / 4).toBeLessThan(4000)
  })

  it('pass errors of Proxmox on in its own words', async () => {
    await using talk = await open(way)
    const missing = await call(talk.session, 'proxmox_guest_start', { vmid: 777, node: 'pve1', type: 'vm' })
    expect(missing.failed).toBe(true)
    expect(missing.text).toContain('777')
  })

  it('hand the secret of a new token over by file', async () => {
    await using talk = await open(way)
    const made = await call(talk.session, 'proxmox_user_token', {
      action: 'create',
      userid: 'deputy@pve',
      tokenid: 'extra',
    })
    expect(made, made.text).toMatchObject({ failed: false })
    const secret = JSON.parse(readFileSync(String(made.data.secret_file), 'utf8')) as { value: string }
    expect(secret.value.length).toBeGreaterThan(10)
    expect(made.text).not.toContain(secret.value)
  })

  it('show the read-only part of a tool where nothing may be changed', async () => {
    const { toolsets: more } = proxmoxTools(cluster.root())
    await using session = await connect({ ...way, more, selection: { toolsets: ['all'], readOnly: true } })
    const { tools } = await session.client.listTools()
    expect(tools.every(tool => tool.annotations?.readOnlyHint === true)).toBe(true)
    const snapshots = tools.find(tool => tool.name === 'proxmox_guest_snapshot')
    expect(snapshots?.inputSchema.properties?.action).toMatchObject({ enum: ['list'] })
    expect(tools.map(tool => tool.name)).not.toContain('proxmox_guest_delete')
    expect(new Set(tools.map(tool => tool.name)).size).toBe(tools.length)
  })
})

describe('inside of a guest', () => {
  const way = { wire: 'stdio', era: 'modern' } as const
  const vmid = 350

  const enter = async () => {
    const talk = await open(way)
    if (!cluster.emulator.state.vms.has(vmid)) {
      await call(talk.session, 'proxmox_guest_clone', { vmid: 9000, newid: vmid })
      const started = await call(talk.session, 'proxmox_guest_start', { vmid })
      expect(started, started.text).toMatchObject({ data: { state: 'ok' } })
    }
    return talk
  }

  it('commands run and answer in any language', async () => {
    await using talk = await enter()
    const args = ['-c', "printf 'gr\\303\\274\\303\\237e \\342\\202\\254'; echo bad >&2; exit 3"]
    const ran = await call(talk.session, 'proxmox_agent_exec', { action: 'exec', vmid, command: 'sh', args })
    expect(ran.data).toMatchObject({ exited: true, exitcode: 3, stdout: 'grüße €', stderr: 'bad\n' })
    const fed = await call(talk.session, 'proxmox_agent_exec', {
      action: 'exec',
      vmid,
      command: 'cat',
      'input-data': 'line',
    })
    expect(fed.data).toMatchObject({ exitcode: 0, stdout: 'line' })
  })

  it('a command without args is one for a shell', async () => {
    await using talk = await enter()
    const exec = (more: object) => call(talk.session, 'proxmox_agent_exec', { action: 'exec', vmid, ...more })
    expect((await exec({ command: 'echo one; exit 3' })).data).toMatchObject({ exitcode: 3, stdout: 'one\n' })
    expect((await exec({ command: 'no-such-program' })).data).toMatchObject({ exitcode: 127 })
    expect((await exec({ command: 'true', args: [] })).data).toMatchObject({ exitcode: 0 })
  })

  it('a program that is missing is named, and is no riddle', async () => {
    await using talk = await enter()
    const failed = await call(talk.session, 'proxmox_agent_exec', {
      action: 'exec',
      vmid,
      command: 'no-such-program',
      args: ['-x'],
    })
    expect(failed.failed).toBe(true)
    expect(failed.text).toContain("could not start 'no-such-program'")
    expect(failed.text).not.toContain('It is not known')
  })

  it('a command that goes on is followed by its pid, and its end is told once', async () => {
    await using talk = await enter()
    const begun = await call(talk.session, 'proxmox_agent_exec', {
      action: 'exec',
      vmid,
      command: 'true',
      'capture-output': false,
    })
    expect(begun.data).toMatchObject({ exited: false, pid: expect.any(Number) })
    const ask = () =>
      call(talk.session, 'proxmox_agent_exec', { action: 'status', vmid, pid: begun.data.pid })
    await vi.waitFor(
      async () => expect((await ask()).data).toMatchObject({ exited: true, exitcode: 0 }),
      10_000,
    )
    expect(await ask()).toMatchObject({ failed: true, text: expect.stringContaining('does not exist') })
  })

  it('files come back as they were written', async () => {
    await using talk = await enter()
    const content = 'naïve €\nsecond line\n'
    expect(
      (await call(talk.session, 'proxmox_agent_file', { action: 'write', vmid, file: '/tmp/x', content }))
        .data,
    ).toMatchObject({ ok: true })
    expect(
      (await call(talk.session, 'proxmox_agent_file', { action: 'read', vmid, file: '/tmp/x' })).data,
    ).toMatchObject({ content })
  })
})
