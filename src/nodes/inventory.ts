import { isIP } from 'node:net'
import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { didYouMean } from '../jobs/nearest.ts'
import { normalizeArch, normalizeOs } from './platform.ts'
import { BUILTIN_RULES } from './policy/policy-rules.ts'
import { describeIssue } from './schema-issue.ts'
import { isHostName, isJumpList, isNameServer, isUserName } from './ssh-destination.ts'

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

const nodeSchema = z.strictObject({
  id: nodeId.refine(id => id.toLowerCase() !== 'local', '"local" is the name of this computer'),
  host: z.string().refine(isHostName, 'must be a host name, an alias of ssh_config, or an IP address'),
  user: z.string().refine(isUserName, 'must be a user name').optional(),
  port: z.number().int().min(1).max(65535).optional(),
  identity: path.optional(),
  jump: z.string().refine(isJumpList, 'must be [user@]host[:port], several separated by commas').optional(),
  aliases: z.array(nodeId).default([]),
  labels: z.record(z.string(), z.string()).default({}),
  os: word.transform(normalizeOs).optional().describe('linux, macos…; deputy nodes add detects it'),
  arch: word.transform(normalizeArch).optional(),
  cores: z.number().int().positive().max(4096).optional(),
  memory: mebibytes.optional(),
  capabilities: z.array(word.transform(value => value.toLowerCase())).default([]),
  specialties: z
    .array(word.transform(value => value.toLowerCase()))
    .default([])
    .describe('Topics it is preferred for: build, test, containers, gpu…, or the name of a program'),
  priority: z.number().int().min(1).max(10).default(5).describe('1 is preferred most, 10 least'),
  max_tasks: z
    .number()
    .int()
    .positive()
    .max(10_000)
    .optional()
    .describe('Concurrent commands; defaults to 2 × cores'),
  fallback: z
    .string()
    .refine(isHostName, 'must be an IP address or a host name')
    .optional()
    .describe('Address to use when no name service resolves the host'),
})

export type ClusterNode = z.output<typeof nodeSchema>

const seconds = z.number().positive().max(86_400)
const percent = z.number().min(1).max(100)

export const clusterSchema = z.strictObject({
  nodes: z.array(nodeSchema).default([]),
  localName: nodeId.optional().describe('Name of this computer in results; defaults to its host name'),
  ssh: z
    .strictObject({
      user: z.string().refine(isUserName, 'must be a user name').optional(),
      timeout: seconds
        .default(5)
        .describe('Seconds for login and first answer after the connection is established'),
      connectTimeout: seconds.default(5).describe('Seconds for connecting, including the key exchange'),
      retries: z
        .number()
        .int()
        .min(0)
        .max(10)
        .default(2)
        .describe('Retries before a command counts as not started'),
      configFile: path.optional().describe('Replaces your ssh_config'),
      knownHosts: path.optional().describe("Replaces Deputy's own known_hosts"),
      hostKeys: z
        .enum(['accept-new', 'strict'])
        .default('accept-new')
        .describe('Whether to accept the key of a new host'),
    })
    .prefault({}),
  thresholds: z
    .strictObject({
      cpu: percent.default(40).describe('Percent above which a machine counts as overloaded'),
      load: z
        .number()
        .positive()
        .optional()
        .describe('Load average, as uptime prints it; defaults to the number of cores'),
      memory: percent.default(80),
    })
    .prefault({}),
  timeouts: z
    .strictObject({
      command: seconds.default(300).describe('Timeout of a routed command in seconds'),
      status: seconds.default(5).describe('Timeout of a status probe in seconds'),
    })
    .prefault({}),
  addresses: z
    .strictObject({
      ttl: z.number().min(0).max(86_400).default(300).describe('Seconds an address is cached'),
      gateway: z
        .string()
        .refine(value => isIP(value) !== 0, 'must be an IP address')
        .optional()
        .describe(
          'Router of your network. The local address used to reach it identifies this computer in the node list',
        ),
      dns: z
        .string()
        .refine(isNameServer, 'must be an IP address, with a port or without')
        .optional()
        .describe("Name server for the hosts of nodes; replaces the system's"),
      allow: z
        .array(z.enum(['loopback', 'link-local', 'container-bridge']))
        .default([])
        .describe('Kinds of addresses to accept from name services, for labs'),
    })
    .prefault({}),
  routing: z
    .strictObject({
      local: z.array(word).optional().describe('First words of commands that run on this computer'),
      offload: z.array(word).optional().describe('First words of commands that run on a node'),
      topics: z
        .record(word, z.array(word))
        .default({})
        .describe('First words of the commands of each topic, for the specialties of nodes'),
    })
    .prefault({}),
  policy: z
    .strictObject({
      deny: z
        .array(
          z.strictObject({ name: nodeId, command: z.string().trim().min(1), reason: z.string().optional() }),
        )
        .default([]),
      disable: z
        .array(
          word.refine(
            name => BUILTIN_RULES.some(rule => rule === name),
            `must be a built-in rule: ${BUILTIN_RULES.join(', ')}`,
          ),
        )
        .default([])
        .describe('Built-in rules to skip'),
    })
    .prefault({}),
})

export type ClusterConfig = z.output<typeof clusterSchema>
export type ClusterConfigInput = z.input<typeof clusterSchema>

/** Validates the `cluster` section. The error names the key and suggests a similar known one. */
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

/** Finds a node by id or alias, ignoring case. */
export const findNode = (nodes: readonly ClusterNode[], name: string): ClusterNode => {
  const wanted = name.trim().toLowerCase()
  const found = nodes.find(node => namesOf(node).includes(wanted))
  if (found) return found
  const known = nodes.flatMap(node => [node.id, ...node.aliases])
  throw new AppError('not_found', `No node '${name}'${didYouMean(name, known) || '.'}`, {
    hint: known.length ? `Known nodes: ${known.join(', ')}.` : 'Add one: deputy nodes add user@host',
  })
}

const invalid = (message: string): AppError =>
  new AppError('invalid', message, { hint: 'Show where each value comes from: deputy config explain' })

const namesOf = (node: ClusterNode): string[] => [node.id, ...node.aliases].map(name => name.toLowerCase())

const assertDistinctNames = (nodes: readonly ClusterNode[]): void => {
  const owners = new Map<string, string>()
  for (const node of nodes) {
    for (const name of new Set(namesOf(node))) {
      const owner = owners.get(name)
      if (owner === node.id) throw invalid(`Two nodes have the id '${node.id}'.`)
      if (owner) throw invalid(`The name '${name}' belongs to both node '${owner}' and node '${node.id}'.`)
      owners.set(name, node.id)
    }
  }
}

function sizeToMebibytes(text: string): number {
  const unit = /[MGT]/i.exec(text)![0].toUpperCase()
  return Math.round(Number.parseFloat(text) * { M: 1, G: 1024, T: 1024 * 1024 }[unit]!)
}
