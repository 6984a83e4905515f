import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { proxmoxToolsSchema } from '../../../src/config/proxmox-tools.ts'
import type { Tool, ToolContext } from '../../../src/mcp/tool.ts'
import { aliases } from '../../../src/mcp/tools/proxmox/aliases.ts'
import { toMcpTool } from '../../../src/mcp/tools/proxmox/mcp-tool.ts'
import { proxmoxToolsets } from '../../../src/mcp/tools/proxmox/proxmox-toolsets.ts'
import type { LxcExec, ProxmoxApi } from '../../../src/mcp/tools/proxmox/row-context.ts'
import { createProxmoxService, type ProxmoxService } from '../../../src/mcp/tools/proxmox/service.ts'
import { TABLE } from '../../../src/mcp/tools/proxmox/table/toolset-table.ts'
import type { Toolset } from '../../../src/mcp/toolset.ts'
import { refusingDeputy } from './refusing-deputy.ts'

export interface ToolsOptions {
  readonly policy?: Record<string, unknown>
  readonly lxc?: LxcExec
  readonly now?: () => number
}

/** All Proxmox tools over a client of the test's choice, in a state directory that goes with the test. */
export const proxmoxTools = (api: ProxmoxApi, { policy = {}, lxc, now }: ToolsOptions = {}) => {
  const stateDir = mkdtempSync(join(tmpdir(), 'deputy-proxmox-'))
  onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }))
  const service = createProxmoxService({
    api,
    stateDir,
    settings: proxmoxToolsSchema.parse({ callsPerMinute: 100_000, ...policy }),
    own: { vmids: ['100000-199999'], tags: ['deputy'] },
    ...(lxc && { lxc }),
    ...(now && { now }),
  })
  const toolsets = proxmoxToolsets(service)
  const call = async (name: string, args: unknown, context: Partial<ToolContext> = {}) =>
    findTool(service, toolsets, name).call(args, toolContext(context))
  return { stateDir, service, toolsets, call }
}

/** One tool of the table is made quickly; a toolset is not. */
const findTool = (service: ProxmoxService, toolsets: readonly Toolset[], name: string): Tool => {
  const row = [...TABLE, aliases].flatMap(({ tools }) => tools).find(tool => tool.name === name)
  const tool = row ? toMcpTool(service, row) : toolsets[0]!.tools.find(one => one.name === name)
  if (!tool) throw new Error(`no tool ${name}`)
  return tool
}

const toolContext = (own: Partial<ToolContext>): ToolContext => ({
  deputy: refusingDeputy,
  origin: 'mcp:test',
  directories: [],
  signal: new AbortController().signal,
  ...own,
})
