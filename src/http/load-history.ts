import { isRecord } from '../jobs/records.ts'

const MAX_VALUES = 60
const STEP_MS = 5_000

/**
 * Adds to each node of a status how busy its CPU was at the last calls, as `cpu_history`: what a chart of its load
 * needs. It is measured while somebody looks, at most every five seconds.
 */
export const createLoadHistory = (now: () => number = () => performance.now()) => {
  let histories = new Map<string, readonly number[]>()
  let measuredAt = Number.NEGATIVE_INFINITY
  return (status: object): object => {
    if (!('nodes' in status) || !isRecord(status.nodes)) return status
    const isDue = now() - measuredAt >= STEP_MS
    if (isDue) measuredAt = now()
    const next = new Map<string, readonly number[]>()
    const nodes = Object.entries(status.nodes).map(([name, node]) => {
      const known = histories.get(name) ?? []
      const cpu = isRecord(node) ? node.cpu_percent : undefined
      const history = isDue && typeof cpu === 'number' ? [...known, cpu].slice(-MAX_VALUES) : known
      next.set(name, history)
      return [name, isRecord(node) ? { ...node, cpu_history: history } : node]
    })
    // Nodes that were removed are forgotten.
    histories = next
    return { ...status, nodes: Object.fromEntries(nodes) }
  }
}
