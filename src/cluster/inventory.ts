import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { nearest } from '../jobs/nearest.ts'
import { isHost, isJump, isUser } from './hosts.ts'
import { describeIssue } from './issues.ts'
import { normalizeArch, normalizeOs } from './platform.ts'

const NODE_ID = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/

const nodeId = z
  .string()
  .regex(
    NODE_ID,
    'must be letters, digits, ".", "_" or "-", at most 63, and start and end with a letter or digit',
  )

const word = z.string().trim().min(1).max(64)

const path = z
  .string()
  .min(1)
  .refine(value => !value.startsWith('-') && !hasControl(value), 'must be a path')

const hasControl = (value: string): boolean => /[\p{Cc}]/u.test(value)

const mebibytes = z.union([
  z.number().int().positive(),
  z
    .string()
    .regex(/^\d+(?:\.\d+)?\s*[MGT](?:i?B)?$/i, 'must be MiB as a number, or a size such as "16G"')
    .transform(sizeToMebibytes),
])

export const nodeSchema = z.strictObject({
  id: nodeId.refine(id => id.toLowerCase() !== 'local', '"local" is the name of this computer'),
  host: z.string().refine(isHost, 'must be a host name, an alias of ssh_config, or an IP address'),
  user: z.string().refine(isUser, 'must be a user name').optional(),
  port: z.number().int().min(1).max(65535).optional(),
  identity: path.optional(),
  jump: z.string().refine(isJump, 'must be [user@]host[:port], several separated by commas').optional(),
  aliases: z.array(nodeId).default([]),
  labels: z.record(z.string(), z.string()).default({}),
  os: word.transform(normalizeOs).optional(),
  arch: word.transform(normalizeArch).optional(),
  cores: z.number().int().positive().max(4096).optional(),
  memory: mebibytes.optional(),
  capabilities: z.array(word.transform(value => value.toLowerCase())).default([]),
  specialties: z.array(word.transform(value => value.toLowerCase())).default([]),
  /** 1 is taken first, 10 last. */
  priority: z.number().int().min(1).max(10).default(5),
  max_tasks: z.number().int().positive().max(10_000).optional(),
  /** The address to use when no name service knows the host. */
  fallback: z.string().refine(isHost, 'must be an IP address or a host name').optional(),
})

export type ClusterNode = z.output<typeof nodeSchema>

const seconds = z.number().positive().max(86_400)
const percent = z.number().min(1).max(100)

export const clusterSchema = z.strictObject({
  nodes: z.array(nodeSchema).default([]),
  /** What results call this computer; its host name unless set. */
  localName: nodeId.optional(),
  ssh: z
    .strictObject({
      user: z.string().refine(isUser, 'must be a user name').optional(),
      timeout: seconds.default(5),
      connectTimeout: seconds.default(5),
      retries: z.number().int().min(0).max(10).default(2),
      configFile: path.optional(),
      knownHosts: path.optional(),
      hostKeys: z.enum(['accept-new', 'strict']).default('accept-new'),
    })
    .prefault({}),
  thresholds: z
    .strictObject({
      cpu: percent.default(40),
      /** Absolute, as `uptime` prints it; one for each core unless set. */
      load: z.number().positive().optional(),
      memory: percent.default(80),
    })
    .prefault({}),
  timeouts: z.strictObject({ command: seconds.default(300), status: seconds.default(5) }).prefault({}),
  addresses: z
    .strictObject({
      ttl: z.number().min(0).max(86_400).default(300),
      gateway: z.string().refine(isHost, 'must be an address').optional(),
      dns: z.string().refine(isHost, 'must be an address').optional(),
      allow: z.array(z.enum(['loopback', 'link-local', 'container-bridge'])).default([]),
    })
    .prefault({}),
  routing: z
    .strictObject({ local: z.array(word).optional(), offload: z.array(word).optional() })
    .prefault({}),
  policy: z
    .strictObject({
      deny: z
        .array(
          z.strictObject({ name: nodeId, command: z.string().trim().min(1), reason: z.string().optional() }),
        )
        .default([]),
      disable: z.array(word).default([]),
    })
    .prefault({}),
})

export type ClusterConfig = z.output<typeof clusterSchema>
export type ClusterConfigInput = z.input<typeof clusterSchema>

/** Validates the cluster part of a configuration; the error names the key and the one that was probably meant. */
export const parseCluster = (input: unknown): ClusterConfig => {
  const parsed = clusterSchema.safeParse(input)
  if (!parsed.success) throw invalid(describeIssue(parsed.error.issues[0]!, clusterSchema))
  assertDistinctNames(parsed.data.nodes)
  return parsed.data
}

export const parseNode = (input: unknown): ClusterNode => {
  const parsed = nodeSchema.safeParse(input)
  if (!parsed.success) throw invalid(describeIssue(parsed.error.issues[0]!, nodeSchema))
  return parsed.data
}

/** Looks a node up by id or alias, without regard to case. */
export const findNode = (nodes: readonly ClusterNode[], name: string): ClusterNode => {
  const wanted = name.trim().toLowerCase()
  const found = nodes.find(node => namesOf(node).includes(wanted))
  if (found) return found
  const known = nodes.flatMap(node => [node.id, ...node.aliases])
  const close = nearest(name, known)
  throw new AppError('not_found', `there is no node "${name}"${close ? `; did you mean "${close}"?` : ''}`, {
    hint: known.length ? `Known nodes: ${known.join(', ')}.` : 'Add one: deputy nodes add user@host',
  })
}

const invalid = (message: string): AppError =>
  new AppError('invalid', message, { hint: 'deputy config explain shows where each value comes from.' })

const namesOf = (node: ClusterNode): string[] => [node.id, ...node.aliases].map(name => name.toLowerCase())

const assertDistinctNames = (nodes: readonly ClusterNode[]): void => {
  const owners = new Map<string, string>()
  for (const node of nodes) {
    for (const name of new Set(namesOf(node))) {
      const owner = owners.get(name)
      if (owner) throw invalid(`the name "${name}" belongs to both node "${owner}" and node "${node.id}"`)
      owners.set(name, node.id)
    }
  }
}

function sizeToMebibytes(text: string): number {
  const unit = /[MGT]/i.exec(text)![0].toUpperCase()
  return Math.round(Number.parseFloat(text) * { M: 1, G: 1024, T: 1024 * 1024 }[unit]!)
}
