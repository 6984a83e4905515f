import { z } from 'zod'
import { isRecord } from '../../../../jobs/records.ts'
import { defineTool, reads, type Tool } from '../../../tool.ts'
import { openCallSession } from '../call-session.ts'
import { withConfirmation } from '../mcp-tool.ts'
import type { ProxmoxService } from '../service.ts'
import { fields, type Item } from '../shape/fields.ts'
import { toPage } from '../shape/result-page.ts'

const COLUMNS = fields(
  'id name status node cpu:pct maxcpu:int mem:gib maxmem:gib disk:gib maxdisk:gib uptime:s pool tags template:bool content shared:bool',
)
const GUEST = fields('vmid:int type name status node cpu:pct mem:gib maxmem:gib pool tags template:bool')

const input = z.strictObject({
  type: z
    .enum(['vm', 'qemu', 'lxc', 'node', 'storage', 'sdn', 'pool'])
    .optional()
    .describe('vm = VMs and containers'),
  filter: z.string().max(512).optional().describe('e.g. node=pve1 tags~prod mem_gib>8'),
  fields: z.string().max(512).optional().describe('columns'),
  limit: z.int().min(1).max(500).optional(),
  cursor: z.string().max(64).optional(),
})

export const clusterResources = (service: ProxmoxService): Tool =>
  defineTool({
    name: 'get_cluster_resources',
    title: 'Proxmox resources',
    description: 'Guests, nodes and storages of Proxmox, filtered and paged.',
    annotations: reads(true),
    input,
    run: async (args, context) =>
      withConfirmation(
        context,
        args,
        async caller => {
          const asked = KINDS[args.type ?? 'all']
          const session = openCallSession(service, caller)
          const answer = await session.call(
            'GET /cluster/resources',
            asked === undefined ? {} : { type: asked },
          )
          const found = (Array.isArray(answer) ? answer.filter(isRecord) : []).filter(item =>
            hasType(item, args.type),
          )
          const columns = asked === 'vm' ? GUEST : COLUMNS
          // A cursor is tied to its query, which includes the filters.
          return toPage(sorted(found), columns, args)
        },
        'get_cluster_resources',
      ),
  })

/** Proxmox itself filters by these four types only. */
const KINDS: Record<string, string | undefined> = {
  vm: 'vm',
  qemu: 'vm',
  lxc: 'vm',
  node: 'node',
  storage: 'storage',
  sdn: 'sdn',
}

const hasType = (item: Item, type: string | undefined): boolean =>
  type === undefined || type === 'vm' || item.type === type

const sorted = (items: readonly Item[]): Item[] =>
  [...items].sort(
    (a, b) => Number(a.vmid ?? 0) - Number(b.vmid ?? 0) || String(a.id).localeCompare(String(b.id)),
  )
