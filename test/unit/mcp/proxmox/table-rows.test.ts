import { describe, expect, it } from 'vitest'
import { aliases } from '../../../../src/mcp/tools/proxmox/aliases.ts'
import { bindAll } from '../../../../src/mcp/tools/proxmox/policy/api-operation.ts'
import { tierOf } from '../../../../src/mcp/tools/proxmox/policy/tier.ts'
import { pathParams, type Row, type Tool } from '../../../../src/mcp/tools/proxmox/table/define-row.ts'
import { TABLE } from '../../../../src/mcp/tools/proxmox/table/toolset-table.ts'
import { createFakeCluster } from '../../../support/proxmox/fake-cluster.ts'
import { leastNames, sampleArgs } from '../../../support/proxmox/samples.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'

interface Case {
  readonly tool: Tool
  readonly action: string
  readonly row: Row
  readonly label: string
}

const cases: Case[] = [...TABLE, aliases].flatMap(({ tools }) =>
  tools.flatMap(tool =>
    Object.entries(tool.actions).map(([action, row]) => ({
      tool,
      action,
      row,
      label: `${tool.name} ${action}`.trim(),
    })),
  ),
)
const least = ({ tool, action, row }: Case) => sampleArgs(tool, action, leastNames(tool, action, row))
const changing = cases.filter(({ row }) => row.tier !== 'read')
const destructive = cases.filter(({ row }) => row.tier === 'destructive')

describe('the tier of every row', () => {
  it.each(cases)('$label is what its method and path say', ({ tool, row }) => {
    const values = Object.fromEntries(
      pathParams(row.path).map(name => [
        name,
        name === 'type' ? 'qemu' : name === 'command' ? 'start' : 'x1',
      ]),
    )
    expect(tierOf(bindAll(row.method, row.path, { ...values, ...row.preset })), tool.name).toBe(row.tier)
  })

  it.each(changing)('$label is refused where changes are off, and nothing is sent', async one => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api)
    const args = least(one)
    const attempt = call(one.tool.name, args)
    await expect(attempt).rejects.toMatchObject({
      code: 'denied',
      hint: expect.stringContaining('PROXMOX_ALLOW_ELEVATED'),
    })
    expect(api.sent.filter(({ method }) => method !== 'GET')).toEqual([])
  })

  it.each(destructive)('$label waits for the user and is sent once for one token', async one => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, { policy: { allowElevated: true, confirm: 'token' } })
    const args = least(one)
    const plan = await call(one.tool.name, args)
    expect(plan.data).toMatchObject({
      status: 'needs_confirmation',
      done: false,
      plan_token: expect.any(String),
    })
    expect(api.sent.filter(({ method }) => method !== 'GET')).toEqual([])
    const confirmed = { ...args, plan_token: plan.data.plan_token }
    await call(one.tool.name, confirmed)
    expect(api.sent.filter(({ method }) => method === one.row.method)).toHaveLength(1)
    await expect(call(one.tool.name, confirmed)).rejects.toThrow('was used already')
  })
})

describe('hostile values', () => {
  const HOSTILE = [
    '../../../access/users#',
    '..',
    '.',
    'a/../b',
    'a%2f..%2fb',
    'a?force=1',
    'a#b',
    'a b',
    'a\nb',
    'a\\b',
    '',
  ]
  const withPath = cases.flatMap(one =>
    pathParams(one.row.path)
      .filter(name => one.tool.params[name]?.type === 'string' && !one.tool.params[name]?.values)
      .map(name => ({ ...one, name, label: `${one.label}: ${name}` })),
  )

  it.each(withPath)('$label never become part of a path', async ({ tool, action, row, name }) => {
    const api = createFakeCluster()
    const { call } = proxmoxTools(api, { policy: { allowElevated: true, confirm: 'token' } })
    for (const value of HOSTILE) {
      const args = { ...sampleArgs(tool, action, leastNames(tool, action, row)), [name]: value }
      await expect(call(tool.name, args), value).rejects.toMatchObject({ code: 'invalid' })
    }
    expect(api.sent).toEqual([])
  })

  it.each(cases)('$label: text stays one value of one parameter', async ({ tool, action, row }) => {
    const texts = [...row.required, ...row.optional].filter(name => {
      const param = tool.params[name]!
      return (
        param.type === 'string' &&
        !param.values &&
        !param.pattern &&
        !param.local &&
        !pathParams(row.path).includes(name)
      )
    })
    const poison = 'a&vmid=999&force=1\r\nX-Evil: 1#?%26'
    for (const name of texts) {
      const api = createFakeCluster()
      const { call } = proxmoxTools(api, { policy: { allowElevated: true, confirm: 'token' } })
      const args = { ...sampleArgs(tool, action, leastNames(tool, action, row)), [name]: poison }
      await call(tool.name, args).catch(error => expect(error).toMatchObject({ name: 'AppError' }))
      for (const { path, params } of api.sent) {
        expect(path).not.toMatch(/Evil|\?|#|%0|&/)
        expect(Object.keys(params).every(key => /^[A-Za-z][\w-]*$/.test(key))).toBe(true)
        if (!row.required.includes('vmid')) expect(params.vmid).not.toBe('999')
      }
    }
  })
})

describe('what an action takes', () => {
  const needing = cases.flatMap(one =>
    one.row.required.map(name => ({ ...one, name, label: `${one.label} without ${name}` })),
  )

  it.each(needing)('$label is an error that names both', async ({ tool, action, row, name }) => {
    const { call } = proxmoxTools(createFakeCluster(), { policy: { allowElevated: true } })
    const args = sampleArgs(tool, action, row.required)
    delete args[name]
    const error = await call(tool.name, args).then(
      () => undefined,
      (thrown: Error) => thrown,
    )
    expect(error?.message).toContain(`'${name}'`)
    expect(error?.message).toContain(tool.name)
  })

  it.each(cases)('$label refuses what it does not know', async ({ tool, action, row }) => {
    const { call } = proxmoxTools(createFakeCluster(), { policy: { allowElevated: true } })
    const args = sampleArgs(tool, action, row.required)
    await expect(call(tool.name, { ...args, nonsense: 1 })).rejects.toThrow("unknown argument 'nonsense'")
    const foreign = Object.keys(tool.params).find(
      name => !row.required.includes(name) && !row.optional.includes(name) && name !== 'plan_token',
    )
    if (!foreign) return
    const extra = sampleArgs(tool, action, [foreign])
    if (!(foreign in extra)) return
    await expect(call(tool.name, { ...args, ...extra })).rejects.toThrow(`does not take '${foreign}'`)
  })

  it('is every parameter of its tool, between all actions', () => {
    const unused = [...TABLE, aliases]
      .flatMap(({ tools }) => tools)
      .flatMap(tool => {
        const taken = new Set(Object.values(tool.actions).flatMap(row => [...row.required, ...row.optional]))
        const named = Object.keys(tool.params)
        return [
          ...named.filter(name => !taken.has(name)),
          ...[...taken].filter(name => !named.includes(name)),
        ].map(name => `${tool.name}: ${name}`)
      })
    expect(unused).toEqual([])
  })

  it('has every place of its path named or found', () => {
    const FOUND = ['node', 'type', 'storage', 'vnet']
    const lost = cases.flatMap(({ row, label }) =>
      pathParams(row.path)
        .filter(
          name => !row.required.includes(name) && !(row.optional.includes(name) && FOUND.includes(name)),
        )
        .map(name => `${label}: ${name}`),
    )
    expect(lost).toEqual([])
  })
})
