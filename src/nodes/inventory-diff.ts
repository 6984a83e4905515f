import type { ClusterNode } from './inventory.ts'

export interface InventoryDiff {
  added: string[]
  removed: string[]
  changed: string[]
}

/** Compares two inventories by node id. */
export const diffInventory = (
  before: readonly ClusterNode[],
  after: readonly ClusterNode[],
): InventoryDiff => {
  const old = new Map(before.map(node => [node.id, JSON.stringify(node)]))
  const kept = after.filter(node => old.has(node.id))
  return {
    added: after.filter(node => !old.has(node.id)).map(node => node.id),
    removed: [...old.keys()].filter(id => !kept.some(node => node.id === id)),
    changed: kept.filter(node => old.get(node.id) !== JSON.stringify(node)).map(node => node.id),
  }
}
