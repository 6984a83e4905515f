import { isAtCapacity, toAppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import type { ChooseRequest, Placement } from '../../nodes/node-chooser.ts'
import { topicsOf } from '../../nodes/topics.ts'
import type { CreateRequest } from '../../ports.ts'
import { placeRecord } from './node-placement.ts'

/** Takes a slot on a node, waiting for one if needed. The first request to the node creates the workspace. */
export const provision = async (
  cluster: Cluster,
  { manifest, remember, waiting, signal }: CreateRequest,
  { except, park }: { except: ReadonlySet<string>; park(): void },
): Promise<Placement> => {
  const wanted = wantedBy(cluster, manifest)
  for (;;) {
    signal.throwIfAborted()
    try {
      const place = await chooseAvoidingFailedNodes(cluster, wanted, except, signal)
      await remember(placeRecord(cluster, place)).catch((error: unknown) => {
        place.release()
        throw error
      })
      return place
    } catch (error) {
      if (!isAtCapacity(error)) throw error
      park()
      waiting?.((error as Error).message)
      await cluster.slots.waitForRelease(signal).catch(() => {
        // A timeout here is not a failure: report "at capacity" so that the job returns to the queue.
        throw isTimeout(signal.reason) ? error : signal.reason
      })
    }
  }
}

const wantedBy = (cluster: Cluster, manifest: Manifest | undefined): ChooseRequest => {
  const { node, ...requires } = manifest?.requires ?? {}
  return { node, requires, topics: manifest === undefined ? [] : topicsFor(cluster, manifest) }
}

/** Topics matter only if a node has specialties. */
const topicsFor = (cluster: Cluster, { agentType, task }: Manifest): string[] => {
  if (cluster.nodes.every(node => node.specialties.length === 0)) return []
  return agentType === 'script' ? topicsOf(task, cluster.config.routing.topics) : [agentType]
}

/** Prefers nodes on which the job has not failed; falls back to the others. */
const chooseAvoidingFailedNodes = async (
  cluster: Cluster,
  wanted: ChooseRequest,
  except: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Placement> => {
  try {
    return await cluster.choose({ ...wanted, except }, signal)
  } catch (error) {
    if (except.size === 0 || isAtCapacity(error) || toAppError(error).code !== 'unavailable') throw error
    return cluster.choose(wanted, signal)
  }
}

const isTimeout = (reason: unknown): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError'

/** Remembers on which nodes a job could not be started. */
export interface Failures {
  of(jobId: string | null): ReadonlySet<string>
  add(jobId: string, nodeId: string): void
  forget(jobId: string): void
}

const MAX_REMEMBERED = 1_000

export const createFailures = (): Failures => {
  const known = new Map<string, Set<string>>()
  return {
    of: jobId => new Set(jobId === null ? [] : known.get(jobId)),
    add: (jobId, nodeId) => {
      const nodes = known.get(jobId) ?? new Set()
      known.set(jobId, nodes.add(nodeId))
      const oldest = known.keys().next()
      if (known.size > MAX_REMEMBERED && !oldest.done) known.delete(oldest.value)
    },
    forget: jobId => void known.delete(jobId),
  }
}
