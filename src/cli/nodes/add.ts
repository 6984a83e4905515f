import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { AppError, toAppError } from '../../jobs/errors.ts'
import { type ClusterConfig, type ClusterNode, parseCluster, parseNode } from '../../nodes/inventory.ts'
import type { ProbeReport } from '../../nodes/probe/probe-report.ts'
import { parseDestination } from '../../nodes/ssh-destination.ts'
import { usage } from '../args/parse.ts'

export interface AddFlags {
  readonly id?: string | undefined
  readonly identity?: string | undefined
  readonly jump?: string | undefined
  readonly fallback?: string | undefined
  readonly alias: readonly string[]
  readonly label: readonly string[]
  readonly specialty: readonly string[]
  readonly priority?: number | undefined
  readonly 'max-tasks'?: number | undefined
}

/** The node entry from the flags; the probe fills in the rest. */
export const nodeFromFlags = (destination: string, flags: AddFlags): ClusterNode => {
  const parsed = parseDestination(destination)
  if (!parsed) throw usage(`'${destination}' is not [user@]host[:port].`, 'nodes')
  return parsedNode({
    id: flags.id ?? shortName(parsed.host),
    host: parsed.host,
    ...(parsed.user !== undefined && { user: parsed.user }),
    ...(parsed.port !== undefined && { port: parsed.port }),
    ...(flags.identity !== undefined && { identity: keyFile(flags.identity) }),
    ...(flags.jump !== undefined && { jump: flags.jump }),
    ...(flags.fallback !== undefined && { fallback: flags.fallback }),
    ...(flags.alias.length > 0 && { aliases: flags.alias }),
    ...(flags.specialty.length > 0 && { specialties: flags.specialty }),
    ...(flags.label.length > 0 && { labels: Object.fromEntries(flags.label.map(splitLabel)) }),
    ...(flags.priority !== undefined && { priority: flags.priority }),
    ...(flags['max-tasks'] !== undefined && { max_tasks: flags['max-tasks'] }),
  })
}

/** Reports an invalid value under the name of its flag. */
const parsedNode = (entry: Record<string, unknown>): ClusterNode => {
  try {
    return parseNode(entry)
  } catch (error) {
    const [, key = '', problem = ''] = /^(\w+)[^:]*: (.+)$/.exec(toAppError(error).message) ?? []
    const flag = FLAGS[key]
    throw flag === undefined ? error : usage(`${flag} ${problem}.`, 'nodes')
  }
}

const FLAGS: Readonly<Record<string, string>> = {
  id: '--id',
  identity: '--identity',
  jump: '--jump',
  fallback: '--fallback',
  aliases: '--alias',
  specialties: '--specialty',
  priority: '--priority',
  max_tasks: '--max-tasks',
}

/** Absolute, because the daemon runs in another directory. */
const keyFile = (path: string): string => {
  const file = resolve(path)
  if (!existsSync(file)) throw usage(`Key file ${file} does not exist.`, 'nodes')
  return file
}

/** Stores what the probe found, so that requirements can be checked without connecting. */
export const describedNode = (node: ClusterNode, report: ProbeReport): ClusterNode => ({
  ...node,
  os: report.os,
  arch: report.arch,
  cores: report.cores,
  memory: report.memoryTotalMb,
  capabilities: report.tools,
})

/** Leaves out defaults: people read the entry. */
export const entryOf = (node: ClusterNode): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(node).filter(([key, value]) => {
      if (key === 'priority') return value !== 5
      if (Array.isArray(value)) return value.length > 0
      return typeof value === 'object' ? Object.keys(value).length > 0 : value !== undefined
    }),
  )

/** Throws when the inventory has a node of that name. */
export const withNode = (config: ClusterConfig, node: ClusterNode): ClusterConfig => {
  if (config.nodes.some(({ id }) => id.toLowerCase() === node.id.toLowerCase())) {
    throw new AppError('conflict', `Node '${node.id}' already exists.`, {
      hint: `Remove it first: deputy nodes remove ${node.id}. Or choose another name: --id NAME`,
    })
  }
  return parseCluster({ ...config, nodes: [...config.nodes, node] })
}

const shortName = (host: string): string =>
  /^[\d.:a-f]+$/i.test(host) ? host.replaceAll(':', '-') : host.split('.')[0]!

const splitLabel = (text: string): [string, string] => {
  const equals = text.indexOf('=')
  if (equals <= 0) throw usage(`--label takes K=V, not '${text}'.`, 'nodes')
  return [text.slice(0, equals), text.slice(equals + 1)]
}
