import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, type ClusterOptions, createCluster } from '../../src/nodes/cluster.ts'
import { type ClusterConfigInput, parseCluster } from '../../src/nodes/inventory.ts'
import { nodeHost } from '../../src/providers/ssh/node-host.ts'
import type { Connection, RunnerHost } from '../../src/runner/channel.ts'
import type { StartRequest } from '../../src/runner/client.ts'
import { type FollowedEnd, type FollowRunOptions, followRun } from '../../src/runner/follow-run.ts'
import { removeDirectory } from './remove-directory.ts'
import type { SshLab } from './sshlab.ts'

/** A cluster over the nodes of a lab; the user's own ssh files are left out of it. */
export const labCluster = (
  lab: SshLab,
  config: ClusterConfigInput = {},
  more: Partial<ClusterOptions> = {},
): Cluster & { dispose(): void } => {
  const directory = mkdtempSync(join(tmpdir(), 'dpc'))
  const cluster = createCluster({
    config: parseCluster({
      ...config,
      nodes:
        config.nodes ??
        lab.nodes.map(node => ({
          id: node.id,
          host: node.address,
          port: node.port,
          user: lab.user,
          identity: lab.identity,
        })),
      ssh: { configFile: 'none', connectTimeout: 3, ...config.ssh },
    }),
    owner: 'test',
    stateDirectory: directory,
    runtimeDirectory: join(directory, 'c'),
    ...more,
  })
  return Object.assign(cluster, {
    dispose: () => {
      cluster.close()
      removeDirectory(directory)
    },
  })
}

/** A bash command as a start request. */
export interface LabCommand {
  id: string
  command: string
  env?: Record<string, string>
  timeoutSeconds?: number
  graceSeconds?: number
  keep?: { head: number; tail: number }
  context?: string
}

export const startOf = (command: LabCommand): Omit<StartRequest, 'from'> => ({
  kind: 'start',
  run: command.id,
  workspace: command.id,
  timeoutSeconds: command.timeoutSeconds ?? 0,
  graceTenths: Math.round((command.graceSeconds ?? 2) * 10),
  keepHead: command.keep?.head ?? 32 * 1024 * 1024,
  keepTail: command.keep?.tail ?? 32 * 1024 * 1024,
  context: command.context ?? '',
  env: Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${value}`),
  argv: ['bash', '-c', command.command],
})

export interface RunOnNode {
  end: FollowedEnd
  stdout: string
  stderr: string
}

const { signal: never } = new AbortController()

export const hostOf = (cluster: Cluster, nodeId: string): RunnerHost =>
  nodeHost(cluster, cluster.find(nodeId))

export const channelTo = (cluster: Cluster, nodeId: string): Promise<Connection> =>
  hostOf(cluster, nodeId).connect(never)

/** Follows a run that was sent before, as a daemon that comes back does. */
export const followOn = (
  host: RunnerHost,
  run: string,
  options: Partial<FollowRunOptions> = {},
): Promise<FollowedEnd> =>
  followRun({
    host,
    run,
    from: 0,
    onStarted: () => undefined,
    onOutput: () => undefined,
    signal: never,
    ...options,
  })

/** Runs a command on a machine to its end and keeps what it printed. */
export const runThrough = async (
  host: RunnerHost,
  command: LabCommand,
  options: { signal?: AbortSignal; onOutput?: (text: string) => void } = {},
): Promise<RunOnNode> => {
  const kept = { stdout: '', stderr: '' }
  const end = await followOn(host, command.id, {
    start: startOf(command),
    onOutput: (stream, data) => {
      kept[stream] += data.toString('utf8')
      options.onOutput?.(data.toString('utf8'))
    },
    signal: options.signal ?? never,
  })
  return { end, ...kept }
}

export const runOn = (
  cluster: Cluster,
  nodeId: string,
  command: LabCommand,
  options?: Parameters<typeof runThrough>[2],
): Promise<RunOnNode> => runThrough(hostOf(cluster, nodeId), command, options)
