import { z } from 'zod'
import { defineTool, reads, type Tool } from '../../../tool.ts'
import { openCallSession } from '../call-session.ts'
import { withConfirmation } from '../mcp-tool.ts'
import type { ProxmoxService } from '../service.ts'
import { fields } from '../shape/fields.ts'
import { toPage } from '../shape/result-page.ts'

const COLUMNS = fields(
  'node status cpu:pct maxcpu:int mem:gib maxmem:gib disk:gib maxdisk:gib uptime:s level',
)

export const listNodes = (service: ProxmoxService): Tool =>
  defineTool({
    name: 'list_nodes',
    title: 'Proxmox nodes',
    description: 'Nodes of the Proxmox cluster: state, load, memory.',
    annotations: reads(true),
    input: z.strictObject({}),
    run: async (args, context) =>
      withConfirmation(
        context,
        args,
        async caller => {
          const session = openCallSession(service, caller)
          const nodes = await session.call('GET /nodes', {})
          return toPage(nodes, COLUMNS)
        },
        'list_nodes',
      ),
  })
