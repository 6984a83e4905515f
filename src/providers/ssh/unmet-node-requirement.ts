import type { Manifest } from '../../jobs/manifest.ts'
import { needsContainer } from '../../jobs/needs-container.ts'
import { fileTarget } from '../../jobs/paths.ts'
import { maxTasksOf } from '../../nodes/candidate.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import { unmetRequirement } from '../../nodes/unmet-requirement.ts'
import type { Fit } from '../../ports.ts'

/** Whether any node could run the job. Unknown facts about a node count as met. */
export const fitsCluster = (cluster: Cluster, manifest: Manifest, routed: boolean): Fit => {
  const problem = promiseProblem(manifest, routed) ?? unmetRequirement(cluster, manifest.requires ?? {})
  return problem === undefined ? { ok: true } : { ok: false, reason: problem }
}

const promiseProblem = (manifest: Manifest, routed: boolean): string | undefined => {
  const container = needsContainer(manifest)
  if (container !== undefined) return container
  if (manifest.vmTemplate !== undefined)
    return `the template '${manifest.vmTemplate}' needs a virtual machine`
  if (Array.isArray(manifest.network))
    return 'nodes cannot keep to a list of domains: use the sandbox, or network none or full'
  if (routed && manifest.network === 'none')
    return 'a routed command has the network of its node: ask for network full, or use the ssh runtime'
  const outside = manifest.files?.find(file => fileTarget(file.path).root === 'tmp')
  if (outside)
    return `the file '${outside.path}' lies outside the workspace, where nothing is written on a node`
  return undefined
}

/** The total number of slots of all nodes; at least one as long as there are nodes, even if all of them are busy. */
export const clusterSlots = (cluster: Cluster): number => {
  if (cluster.nodes.length === 0) return 0
  return Math.max(
    1,
    cluster.nodes.reduce((sum, node) => sum + maxTasksOf(node, cluster.peek(node)?.report), 0),
  )
}
