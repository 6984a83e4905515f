import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, type ClusterOptions, createCluster } from '../../src/cluster/cluster.ts'
import { type ClusterConfigInput, parseCluster } from '../../src/cluster/inventory.ts'
import { type HeldEnd, holdCommand } from '../../src/cluster/remote/hold.ts'
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
      rmSync(directory, { recursive: true, force: true })
    },
  })
}

export interface HeldCommand {
  end: HeldEnd
  stdout: string
  stderr: string
}

/** Runs a command on a node to its end and keeps what it printed. */
export const runOn = async (
  cluster: Cluster,
  nodeId: string,
  command: { id: string; command: string } & Record<string, unknown>,
  options: {
    signal?: AbortSignal
    onOutput?: (text: string) => void
    onStarted?: (fresh: boolean) => void
  } = {},
): Promise<HeldCommand> => {
  const kept = { stdout: '', stderr: '' }
  const end = await holdCommand({
    cluster,
    node: cluster.find(nodeId),
    id: command.id,
    command,
    from: 0,
    onStarted: fresh => options.onStarted?.(fresh),
    onOutput: (stream, data) => {
      kept[stream] += data.toString('utf8')
      options.onOutput?.(data.toString('utf8'))
    },
    signal: options.signal ?? new AbortController().signal,
  })
  return { end, ...kept }
}
