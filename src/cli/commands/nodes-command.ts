import { AppError } from '../../jobs/errors.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import { findNode } from '../../nodes/inventory.ts'
import type { NodeStatus } from '../../nodes/probe/node-monitor.ts'
import { unknownSubcommand, usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import type { Column } from '../terminal/table.ts'

const VERBS = ['list', 'check', 'add', 'remove', 'reload']

export default defineCommand({
  usage: '[list | check [ID…] | add [USER@]HOST[:PORT] | remove ID | reload]',
  description: `Nodes are machines that Deputy reaches by SSH, with your ssh_config, agent and keys. add probes the machine and
writes it to the configuration file; nothing is installed on it. The running daemon picks up the change immediately. Run
reload after you edit the configuration file by hand.`,
  examples: [
    ['deputy nodes add ann@builder.local --alias linux', 'probe a machine and add it'],
    ['deputy nodes check', 'probe all nodes and show their load'],
    ['deputy run --node builder -- make test', 'a job on that node'],
    ['deputy run --requires os=macos,arch=arm64 -- uname -a', 'a job on a node that fits'],
  ],
  flags: {
    id: { type: 'string', value: 'NAME', summary: 'add: name of the node; the host otherwise' },
    alias: { type: 'list', value: 'NAME', summary: 'add: another name for it' },
    identity: { type: 'string', short: 'i', value: 'FILE', summary: 'add: private key' },
    jump: { type: 'string', short: 'J', value: 'HOST', summary: 'add: jump host, [user@]host[:port]' },
    fallback: {
      type: 'string',
      value: 'ADDRESS',
      summary: 'add: address when no name service knows the host',
    },
    label: { type: 'list', short: 'l', value: 'K=V', summary: 'add: label' },
    specialty: { type: 'list', value: 'NAME', summary: 'add: work it is preferred for' },
    priority: { type: 'number', value: 'N', summary: 'add: 1 is taken first, 10 last (default 5)' },
    'max-tasks': { type: 'number', value: 'N', summary: 'add: commands at once' },
    json: JSON_FLAG,
  },
  words: VERBS,
  async run(context, { flags, args }) {
    const [verb = 'list', ...names] = args
    const { clusterConfig, withCluster } = await import('../nodes/open-nodes.ts')
    const config = await clusterConfig(context)
    switch (verb) {
      case 'list':
        return flags.json ? context.printJson(config.nodes) : show(context, config.nodes, NODE_COLUMNS)
      case 'check': {
        const nodes = names.length === 0 ? config.nodes : names.map(name => findNode(config.nodes, name))
        const statuses = await withCluster(context, { ...config, nodes }, cluster =>
          cluster.status({ force: true, everyone: true }),
        )
        if (flags.json) await context.printJson(statuses.map(statusJson))
        else await showChecks(context, statuses)
        return statuses.some(status => status.health === 'unreachable') ? 1 : 0
      }
      case 'add': {
        const [destination] = names
        if (destination === undefined || names.length > 1)
          throw usage('Give exactly one machine. Usage: deputy nodes add user@host', 'nodes')
        const { nodeFromFlags, describedNode, entryOf, withNode } = await import('../nodes/add.ts')
        const { addNodeTo } = await import('../nodes/config-file.ts')
        const { tellDaemon } = await import('../nodes/tell-daemon.ts')
        const asked = nodeFromFlags(destination, flags)
        const all = withNode(config, asked)
        const { report } = await withCluster(context, all, cluster =>
          cluster.probe(cluster.find(asked.id), new AbortController().signal),
        )
        const node = describedNode(asked, report)
        addNodeTo(context.home.configFile, entryOf(node))
        const told = await tellDaemon(context)
        if (flags.json) return context.printJson(node)
        await context.print(
          `${node.id}: ${report.os} ${report.arch}, ${report.cores} cores, ${Math.round(report.memoryTotalMb / 1024)} GiB, ${report.tools.length} tools; jobs ${report.isolates ? 'are isolated by bubblewrap' : 'are not isolated: bubblewrap is missing'}\n`,
        )
        return context.print(`Written to ${context.home.configFile}. ${told}\n`)
      }
      case 'remove':
      case 'rm': {
        const [name] = names
        if (name === undefined) throw usage('No node given. Usage: deputy nodes remove ID', 'nodes')
        const { removeNodeFrom } = await import('../nodes/config-file.ts')
        const { tellDaemon } = await import('../nodes/tell-daemon.ts')
        const { id } = findNode(config.nodes, name)
        if (!removeNodeFrom(context.home.configFile, id)) {
          throw new AppError('not_found', `${context.home.configFile} has no node '${id}'.`, {
            hint: 'deputy config explain shows where it comes from.',
          })
        }
        const told = await tellDaemon(context)
        return flags.json ? context.printJson({ removed: id }) : context.print(`${id} removed. ${told}\n`)
      }
      case 'reload': {
        const client = await context.plainClient()
        const change = await client.reload()
        if (flags.json) return context.printJson(change)
        const { restart = [], ...nodes } = change
        const waits = restart.length > 0 && `Needs deputy daemon restart: ${restart.join(', ')}\n`
        return context.print(`${describeChange(nodes)}\n${waits || ''}`)
      }
      default:
        throw unknownSubcommand('nodes', verb, VERBS)
    }
  },
})

const describeChange = (change: Readonly<Record<string, readonly string[]>>): string =>
  Object.entries(change)
    .filter(([, ids]) => ids.length > 0)
    .map(([what, ids]) => `${what}: ${ids.join(', ')}`)
    .join('; ') || 'No nodes changed.'

const show = <T>(context: Context, rows: readonly T[], columns: Column<T>[]): Promise<number> =>
  rows.length === 0
    ? context.print('No nodes. Add one: deputy nodes add user@host\n')
    : context.printTable(rows, columns)

const showChecks = async (context: Context, statuses: readonly NodeStatus[]): Promise<void> => {
  await show(context, statuses, STATUS_COLUMNS)
  for (const status of statuses) {
    if (status.health === 'healthy') continue
    const hint = status.error?.hint
    await context.print(`${status.id}: ${status.reason}\n${hint ? `  ${hint}\n` : ''}`)
  }
}

/** Uses the field names of cluster_status. */
const statusJson = ({ id, health, reason, since, at, latencyMs, report, error }: NodeStatus) => ({
  id,
  status: health,
  reachable: health !== 'unreachable',
  ...(reason !== undefined && { reason }),
  ...(error?.hint && { hint: error.hint }),
  since: new Date(since).toISOString(),
  checked_at: new Date(at).toISOString(),
  ...(report && {
    latency_ms: latencyMs,
    os: report.os,
    arch: report.arch,
    host_name: report.hostName,
    cores: report.cores,
    cpu_percent: report.cpu,
    memory_percent: report.memory,
    memory_mb: report.memoryTotalMb,
    load_1m: report.load,
    disk_percent: report.disk,
    disk_free_mb: report.diskFreeMb,
    running_tasks: report.jobs,
    isolates: report.isolates,
    capabilities: report.tools,
  }),
})

const NODE_COLUMNS: Column<ClusterNode>[] = [
  { title: 'ID', value: node => node.id },
  {
    title: 'HOST',
    value: node => `${node.user ? `${node.user}@` : ''}${node.host}${node.port ? `:${node.port}` : ''}`,
  },
  { title: 'SYSTEM', value: node => [node.os, node.arch].filter(Boolean).join(' ') || '–' },
  { title: 'CORES', value: node => String(node.cores ?? '–'), align: 'right' },
  { title: 'PRIORITY', value: node => String(node.priority), align: 'right' },
  { title: 'ALIASES', value: node => node.aliases.join(', ') || '–' },
]

const number = (value: number | undefined, unit = ''): string =>
  value === undefined ? '–' : `${value}${unit}`

const STATUS_COLUMNS: Column<NodeStatus>[] = [
  { title: 'ID', value: status => status.id },
  { title: 'HEALTH', value: status => status.health },
  { title: 'SYSTEM', value: ({ report }) => (report ? `${report.os} ${report.arch}` : '–') },
  { title: 'CPU', value: ({ report }) => number(report?.cpu, ' %'), align: 'right' },
  { title: 'MEMORY', value: ({ report }) => number(report?.memory, ' %'), align: 'right' },
  { title: 'LOAD', value: ({ report }) => number(report?.load), align: 'right' },
  { title: 'CORES', value: ({ report }) => number(report?.cores), align: 'right' },
  { title: 'DISK', value: ({ report }) => number(report?.disk, ' %'), align: 'right' },
  { title: 'TASKS', value: ({ report }) => number(report?.jobs), align: 'right' },
  { title: 'LATENCY', value: status => (status.report ? `${status.latencyMs} ms` : '–'), align: 'right' },
]
