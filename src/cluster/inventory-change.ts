import type { ClusterNode } from './inventory.ts'

export interface InventoryChange {
  added: string[]
  removed: string[]
  changed: string[]
}

/** What another inventory means for those who know the nodes by their names. */
export const changeOf = (before: readonly ClusterNode[], after: readonly ClusterNode[]): InventoryChange => {
  const old = new Map(before.map(node => [node.id, JSON.stringify(node)]))
  const kept = after.filter(node => old.has(node.id))
  return {
    added: after.filter(node => !old.has(node.id)).map(node => node.id),
    removed: [...old.keys()].filter(id => !kept.some(node => node.id === id)),
    changed: kept.filter(node => old.get(node.id) !== JSON.stringify(node)).map(node => node.id),
  }
}
