import { z } from 'zod'
import type { ControlDeps } from '../deps.ts'
import { json } from '../respond.ts'
import { type Route, route } from '../route.ts'
import { withSignal } from '../signal.ts'

const load = {
  cpu: z.number().nullable().describe('Share of the CPUs in use, 0 to 1'),
  memory: z.number().nullable().describe('In bytes'),
  memory_limit: z.number().nullable(),
}

const overviewSchema = z.looseObject({
  configured: z.boolean(),
  nodes: z.array(z.looseObject({ name: z.string(), online: z.boolean(), ...load })),
  guests: z.array(
    z.looseObject({
      vmid: z.number(),
      name: z.string().nullable(),
      kind: z.enum(['qemu', 'lxc']),
      node: z.string(),
      status: z.string(),
      template: z.boolean(),
      ...load,
    }),
  ),
})

export const proxmoxRoutes = ({ proxmox, closing }: Pick<ControlDeps, 'proxmox' | 'closing'>): Route[] => [
  route({
    method: 'GET',
    path: '/api/proxmox',
    tag: 'proxmox',
    summary: 'Show the nodes and guests of the Proxmox VE cluster',
    responses: { 200: { description: 'Nodes and guests; empty without a cluster', schema: overviewSchema } },
    handle: call =>
      withSignal(call, closing, async signal =>
        json(
          proxmox === undefined
            ? { configured: false, nodes: [], guests: [] }
            : { configured: true, ...(await proxmox(signal)) },
        ),
      ),
  }),
]
