import type { Tool } from '../../tool.ts'
import type { Toolset } from '../../toolset.ts'
import { aliases } from './aliases.ts'
import { toMcpTool } from './mcp-tool.ts'
import { apiCall } from './raw/api-call.ts'
import { apiDescribe } from './raw/api-describe.ts'
import { apiSearch } from './raw/api-search.ts'
import { clusterResources } from './raw/cluster-resources.ts'
import { listNodes } from './raw/list-nodes.ts'
import type { ProxmoxService } from './service.ts'
import { TABLE } from './table/toolset-table.ts'

const INSTRUCTIONS =
  'Proxmox: changes need PROXMOX_ALLOW_ELEVATED. A call that answers status needs_confirmation was not done: the user must agree. A task is done only when its state is ok; follow a running one by its upid (wait: seconds to wait, default 15). Guest tools find node and type by vmid. Tools for one area: use_toolset, before you hand work to a subagent. Anything without a tool: proxmox_api_search, then proxmox_api_describe, then proxmox_api_call.'

/** All Proxmox toolsets. `proxmox` with its five tools is served by default, the others on request. */
export const proxmoxToolsets = (service: ProxmoxService): Toolset[] => {
  const curated = [...TABLE, aliases].map(({ name, about, tools }) =>
    lazyToolset({ name, summary: about, byDefault: false }, () =>
      tools.map(tool => toMcpTool(service, tool)),
    ),
  )
  const known = curated.filter(({ name }) => name !== aliases.name)
  return [
    lazyToolset(
      {
        name: 'proxmox',
        summary: 'The Proxmox cluster: nodes, resources, any API call.',
        byDefault: true,
        instructions: INSTRUCTIONS,
      },
      () => [listNodes, clusterResources, apiSearch, apiDescribe, apiCall].map(make => make(service)),
    ),
    ...curated,
    lazyToolset({ name: 'proxmox-all', summary: 'Every curated Proxmox tool.', byDefault: false }, () =>
      known.flatMap(({ tools }) => tools),
    ),
  ]
}

/** Creates the tools when a client selects the toolset: a hundred schemas would slow down the start of the daemon. */
const lazyToolset = (about: Omit<Toolset, 'tools'>, make: () => Tool[]): Toolset => {
  let made: Tool[] | undefined
  return {
    ...about,
    get tools() {
      made ??= make()
      return made
    },
  }
}
