import { AppError, toAppError } from '../jobs/errors.ts'
import { nearest } from '../jobs/nearest.ts'
import { ownProperty } from '../jobs/own-property.ts'
import { type ClusterConfig, type ClusterNode, parseCluster } from './inventory.ts'

interface ClusterEnvironment {
  config: ClusterConfig
  /** The variable that set each key, for `deputy config explain`. */
  origins: Record<string, string>
  /** About variables such as CLUSTER_X_HOST where X is not a node. */
  warnings: string[]
}

/** Returns a copy of the configuration with the CLUSTER_* variables applied. */
export const applyClusterEnvironment = (
  config: ClusterConfig,
  env: Readonly<Record<string, string | undefined>>,
): ClusterEnvironment => {
  const next: ClusterConfig = structuredClone(config)
  const origins: Record<string, string> = {}
  const warnings: string[] = []
  const nodeVariables: [string, string][] = []
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('CLUSTER_') || value === undefined || value === '') continue
    const key = ownProperty(SETTINGS, name)
    if (key !== undefined) {
      applySetting(next, key, value, name)
      origins[key] = name
    } else if (NODE_VARIABLE.test(name)) nodeVariables.push([name, value])
  }
  // HOST first: it adds a node that the other variables change.
  for (const [name, value] of nodeVariables.sort(([a], [b]) => endOf(a) - endOf(b))) {
    const key = applyNodeVariable(next, name, value)
    if (key === undefined) warnings.push(unknownNode(name, next.nodes))
    else origins[key] = name
  }
  return { config: parseWithOrigins(next, origins), origins, warnings }
}

/** An error names the variable that has the invalid value, not only the key that it sets. */
const parseWithOrigins = (config: ClusterConfig, origins: Record<string, string>): ClusterConfig => {
  try {
    return parseCluster(config)
  } catch (error) {
    const cause = toAppError(error)
    const key = Object.keys(origins).find(candidate => cause.message.startsWith(`${candidate}:`))
    if (!key) throw cause
    const variable = origins[key]!
    throw new AppError('invalid', `${variable} (${cause.message})`, {
      hint: `Change or unset ${variable}.`,
      cause,
    })
  }
}

/** The key that each variable sets. */
const SETTINGS: Readonly<Record<string, string>> = {
  CLUSTER_SSH_USER: 'ssh.user',
  CLUSTER_SSH_TIMEOUT: 'ssh.timeout',
  CLUSTER_SSH_CONNECT_TIMEOUT: 'ssh.connectTimeout',
  CLUSTER_SSH_RETRIES: 'ssh.retries',
  CLUSTER_CPU_THRESHOLD: 'thresholds.cpu',
  CLUSTER_LOAD_THRESHOLD: 'thresholds.load',
  CLUSTER_MEMORY_THRESHOLD: 'thresholds.memory',
  CLUSTER_CMD_TIMEOUT: 'timeouts.command',
  CLUSTER_STATUS_TIMEOUT: 'timeouts.status',
  CLUSTER_IP_CACHE_TTL: 'addresses.ttl',
  CLUSTER_GATEWAY: 'addresses.gateway',
  CLUSTER_DNS: 'addresses.dns',
}

/** These settings are strings; all others are numbers. */
const TEXTS = ['ssh.user', 'addresses.gateway', 'addresses.dns']

const applySetting = (config: ClusterConfig, key: string, value: string, name: string): void => {
  const [section, field] = key.split('.') as ['ssh', string]
  const settings: Record<string, unknown> = config[section]
  settings[field] = TEXTS.includes(key) ? value : parseNumber(value, name)
}

const parseNumber = (value: string, name: string): number => {
  const number = Number(value)
  if (Number.isFinite(number)) return number
  throw new AppError('invalid', `${name} is '${value}', not a number.`, {
    hint: `Unset ${name} or set it to a number.`,
  })
}

const NODE_VARIABLE = /^CLUSTER_(.+)_(HOST|IP|USER)$/

/** True for the variables that add or change a single node. */
export const isNodeVariable = (name: string): boolean => NODE_VARIABLE.test(name) && !(name in SETTINGS)

const NODE_KEYS = [
  { end: 'HOST', key: 'host' },
  { end: 'IP', key: 'fallback' },
  { end: 'USER', key: 'user' },
] as const

const endOf = (name: string): number => NODE_KEYS.findIndex(({ end }) => name.endsWith(`_${end}`))

/**
 * CLUSTER_MAC_STUDIO_HOST and CLUSTER_MACSTUDIO_HOST both set the host of `mac-studio`; aliases work the same way. A
 * host adds an unknown node; so does an address, unless its name looks like a slip. Returns the key that was set.
 */
const applyNodeVariable = (config: ClusterConfig, name: string, value: string): string | undefined => {
  const { end, key } = NODE_KEYS[endOf(name)]!
  const wanted = NODE_VARIABLE.exec(name)![1]!
  const index = config.nodes.findIndex(node => variableNames(node).has(wanted))
  const node = config.nodes[index]
  if (node) {
    node[key] = value
    return `nodes[${index}].${key}`
  }
  const isSlip = nearest(
    wanted,
    config.nodes.flatMap(known => [...variableNames(known)]),
  )
  if (end === 'USER' || (end === 'IP' && isSlip)) return undefined
  const id = wanted.toLowerCase().replaceAll('_', '-')
  config.nodes.push({ ...EMPTY_NODE, id, host: value })
  return `nodes[${config.nodes.length - 1}].host`
}

const EMPTY_NODE = { aliases: [], labels: {}, capabilities: [], specialties: [], priority: 5 }

const variableNames = (node: ClusterNode): Set<string> => {
  const names = [node.id, ...node.aliases].map(name => name.toUpperCase())
  return new Set(names.flatMap(name => [name.replace(/[^A-Z0-9]/g, '_'), name.replace(/[^A-Z0-9]/g, '')]))
}

const unknownNode = (name: string, nodes: readonly ClusterNode[]): string => {
  const known = nodes.flatMap(node =>
    NODE_KEYS.flatMap(({ end }) => [...variableNames(node)].map(n => `CLUSTER_${n}_${end}`)),
  )
  const close = nearest(name, known)
  return `${name} does not match a node${close ? `; did you mean ${close}?` : ''}`
}

/** @public Name and key of every variable, for the reference documentation. */
export const CLUSTER_VARIABLES: readonly (readonly [string, string])[] = Object.entries(SETTINGS)
