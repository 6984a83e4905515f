import { describe, expect, it } from 'vitest'
import type { Tool } from '../../../../src/mcp/tool.ts'
import { aliases } from '../../../../src/mcp/tools/proxmox/aliases.ts'
import { TABLE } from '../../../../src/mcp/tools/proxmox/table/toolset-table.ts'
import { lintTool } from '../../../support/mcp/lint-tool.ts'
import { estimateTokens } from '../../../support/mcp/tokens.ts'
import { createFakeCluster } from '../../../support/proxmox/fake-cluster.ts'
import { B_TOOLS, D_ACTIONS } from '../../../support/proxmox/known-tools.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'

const listed = ({ name, title, description, annotations, input }: Tool) => ({
  name,
  title,
  description,
  annotations,
  inputSchema: input,
})
/** What a model reads of a tool, counted as those of the list it replaces: four characters a token. */
const seen = ({ name, description, input }: Tool) => ({ name, description, input_schema: input })
const seenCost = (tools: readonly Tool[]) => Math.ceil(JSON.stringify(tools.map(seen)).length / 4)
const cost = (tools: readonly Tool[]) => estimateTokens(JSON.stringify(tools.map(listed)))

describe('the Proxmox tools', () => {
  it('are described in a way every client can read', () => {
    const { toolsets } = proxmoxTools(createFakeCluster())
    const all = toolsets
      .flatMap(({ tools }) => tools)
      .flatMap(tool => (tool.readOnly ? [tool, tool.readOnly] : [tool]))
    expect(all.flatMap(tool => lintTool(tool).map(problem => `${tool.name}: ${problem}`))).toEqual([])
  })

  it('have names of their own', () => {
    const names = [...TABLE, aliases].flatMap(({ tools }) => tools.map(tool => tool.name))
    expect(new Set(names).size).toBe(names.length)
  })

  it('keep every tool and action users know', () => {
    const have = new Map(
      [...TABLE].flatMap(({ tools }) => tools).map(tool => [tool.name, Object.keys(tool.actions)]),
    )
    expect(Object.keys(D_ACTIONS)).toHaveLength(92)
    const missing = Object.entries(D_ACTIONS).flatMap(([tool, actions]) =>
      actions.filter(action => !have.get(tool)?.includes(action)).map(action => `${tool} ${action}`),
    )
    expect(missing).toEqual([])
    expect(aliases.tools.map(tool => tool.name).sort()).toEqual([...B_TOOLS].sort())
  })

  it('cost under 700 tokens by default', () => {
    const { toolsets } = proxmoxTools(createFakeCluster())
    expect(cost(toolsets[0]!.tools)).toBeLessThan(700)
  })

  it('cost less than the list they replace, toolset by toolset', () => {
    const { toolsets } = proxmoxTools(createFakeCluster())
    const costs = Object.fromEntries(toolsets.map(({ name, tools }) => [name, seenCost(tools)]))
    if (process.env.SHOW) console.error(costs)
    expect(costs['proxmox-all']).toBeLessThan(16_600)
    for (const [name, tokens] of Object.entries(costs))
      if (name !== 'proxmox-all') expect(tokens, name).toBeLessThan(4500)
  })

  it('are only those that change nothing where nothing may be changed', () => {
    const { toolsets } = proxmoxTools(createFakeCluster())
    const left = toolsets
      .flatMap(({ tools }) => tools)
      .map(tool => (tool.annotations.readOnlyHint ? tool : tool.readOnly))
      .filter(tool => tool !== undefined)
    expect(left.every(tool => tool.annotations.readOnlyHint)).toBe(true)
    const node = left.find(tool => tool.name === 'proxmox_node_service')
    expect(JSON.stringify(node?.input)).not.toContain('control')
  })
})
