import { z } from 'zod'
import type { Proxmox } from './proxmox-client.ts'

/** The nodes and guests of a cluster with their load, as far as the token may see them. */
export interface ClusterOverview {
  readonly nodes: readonly NodeOverview[]
  readonly guests: readonly GuestOverview[]
}

interface Load {
  /** Share of the CPUs in use, 0 to 1. */
  readonly cpu: number | null
  readonly memory: number | null
  readonly memory_limit: number | null
}

interface NodeOverview extends Load {
  readonly name: string
  readonly online: boolean
}

export interface GuestOverview extends Load {
  readonly vmid: number
  readonly name: string | null
  readonly kind: 'qemu' | 'lxc'
  readonly node: string
  readonly status: string
  readonly template: boolean
}

const load = { cpu: z.number().optional(), mem: z.number().optional(), maxmem: z.number().optional() }
const nodeRow = z.object({
  type: z.literal('node'),
  node: z.string(),
  status: z.string().optional(),
  ...load,
})
const guestRow = z.object({
  type: z.enum(['qemu', 'lxc']),
  vmid: z.coerce.number(),
  node: z.string(),
  name: z.string().optional(),
  status: z.string().optional(),
  template: z.union([z.number(), z.boolean()]).optional(),
  ...load,
})

export const readClusterOverview = async (
  proxmox: Pick<Proxmox, 'get'>,
  signal: AbortSignal,
): Promise<ClusterOverview> => {
  // Storages and pools are in the same list.
  const rows = z.array(z.unknown()).parse(await proxmox.get('/cluster/resources', {}, { signal }))
  return {
    nodes: rowsOf(nodeRow, rows)
      .map(({ node, status, ...row }) => ({ name: node, online: status === 'online', ...loadOf(row) }))
      .sort((one, other) => one.name.localeCompare(other.name)),
    guests: rowsOf(guestRow, rows)
      .map(({ vmid, name, type, node, status, template, ...row }) => ({
        vmid,
        name: name ?? null,
        kind: type,
        node,
        status: status ?? 'unknown',
        template: Number(template ?? 0) === 1,
        ...loadOf(row),
      }))
      .sort((one, other) => one.vmid - other.vmid),
  }
}

const rowsOf = <T>(schema: z.ZodType<T>, rows: readonly unknown[]): T[] =>
  rows.flatMap(row => {
    const { data, success } = schema.safeParse(row)
    return success ? [data] : []
  })

type LoadRow = z.output<z.ZodObject<typeof load>>

const loadOf = ({ cpu, mem, maxmem }: LoadRow): Load => ({
  cpu: cpu ?? null,
  memory: mem ?? null,
  memory_limit: maxmem ?? null,
})
