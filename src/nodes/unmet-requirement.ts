import { AppError } from '../jobs/errors.ts'
import { traitsOf } from './candidate.ts'
import type { Cluster } from './cluster.ts'
import { compileRequirements, describeRequirements, firstUnmet, type Requirements } from './requirements.ts'

/** Why no node can meet the requirements; undefined when one can, or when a node that may fit was not probed yet. */
export const unmetRequirement = (
  cluster: Pick<Cluster, 'nodes' | 'find' | 'peek'>,
  requires: Requirements & { node?: string | undefined },
): string | undefined => {
  if (cluster.nodes.length === 0) return 'the inventory has no nodes'
  let { nodes } = cluster
  if (requires.node !== undefined) {
    try {
      nodes = [cluster.find(requires.node)]
    } catch (error) {
      return error instanceof AppError ? error.message : String(error)
    }
  }
  const wanted = compileRequirements(requires)
  if (wanted.empty) return undefined
  const clauses = nodes.map(node => {
    const report = cluster.peek(node)?.report
    if (
      report === undefined &&
      ((wanted.os !== undefined && node.os === undefined) ||
        (wanted.arch !== undefined && node.arch === undefined) ||
        wanted.capabilities.length > 0)
    )
      return undefined
    const clause = firstUnmet(wanted, traitsOf(node, report))
    return clause === undefined ? undefined : `${node.id} ${clause}`
  })
  if (clauses.some(clause => clause === undefined)) return undefined
  return `no node fits ${describeRequirements(wanted)}: ${clauses.slice(0, 8).join('; ')}`
}
