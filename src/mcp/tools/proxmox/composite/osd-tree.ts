import type { Item } from '../shape/fields.ts'
import { item, items } from './values.ts'

/** Flattens the tree of OSDs: a root object, hosts, OSDs. */
export const osdTree = (data: unknown): Item[] => {
  const found: Item[] = []
  const walk = (nodes: readonly Item[], host: unknown) => {
    for (const node of nodes) {
      if (node.type === 'osd') found.push({ ...node, host: node.host ?? host })
      walk(items(node.children), node.type === 'host' ? node.name : host)
    }
  }
  walk([item(item(data).root)], undefined)
  return found.sort((a, b) => Number(a.id) - Number(b.id))
}
