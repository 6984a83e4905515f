import { z } from 'zod'
import { defineTool, reads, type Tool } from '../../../tool.ts'
import type { ProxmoxService } from '../service.ts'

export const apiSearch = (service: ProxmoxService): Tool =>
  defineTool({
    name: 'proxmox_api_search',
    title: 'Search the Proxmox API',
    description: 'Find operations of the Proxmox API by words, e.g. "snapshot rollback".',
    annotations: reads(true),
    input: z.strictObject({ query: z.string().min(1).max(200), limit: z.int().min(1).max(50).optional() }),
    run: async ({ query, limit }, { signal }) => {
      const catalogue = await service.api.catalogue({ signal })
      const hits = catalogue.search(query, limit ?? 15)
      return {
        data: {
          version: catalogue.version,
          operations: hits.map(({ verb, path, description }) => `${verb} ${path}  ${description}`.trim()),
          ...(catalogue.source === 'none' && { note: 'This host does not serve its API documentation.' }),
        },
      }
    },
  })
