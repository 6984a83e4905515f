import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import type { Machine } from '../../ports.ts'
import { releaseWorkspaces } from '../../runner/client.ts'
import { nodeHost } from './node-host.ts'
import { UNDELIVERED } from './node-placement.ts'

export type Releaser = (node: ClusterNode, machine: Machine, signal: AbortSignal) => Promise<void>

const GATHER_MS = 150

interface Waiting {
  readonly machines: Map<string, Machine>
  readonly done: Promise<ReadonlySet<string>>
}

/** Deletes workspaces in batches: one connection cleans up all workspaces that are released at the same time. */
export const createReleaser = (cluster: Cluster): Releaser => {
  const gathering = new Map<string, Waiting>()

  const releaseAll = async (
    node: ClusterNode,
    machines: ReadonlyMap<string, Machine>,
  ): Promise<ReadonlySet<string>> => {
    await sleep(GATHER_MS)
    gathering.delete(node.id)
    // Several callers share this request, so it uses its own timeout and no caller's signal.
    const { signal } = new AbortController()
    const channel = await nodeHost(cluster, node).connect(signal)
    const bar = [...machines.values()].flatMap(({ details }) => details[UNDELIVERED] ?? []).map(String)
    return releaseWorkspaces(channel, { workspaces: [...machines.keys()], bar, signal })
  }

  return async (node, machine, signal) => {
    signal.throwIfAborted()
    const { id } = machine
    let waiting = gathering.get(node.id)
    if (waiting) waiting.machines.set(id, machine)
    else {
      const machines = new Map([[id, machine]])
      waiting = { machines, done: releaseAll(node, machines) }
      gathering.set(node.id, waiting)
    }
    const gone = await waiting.done
    if (gone.has(id)) return
    throw new AppError('unavailable', `Node ${node.id} could not end everything that machine ${id} runs.`, {
      hint: `Look at the processes there: ssh ${node.host} ps -ef`,
    })
  }
}
