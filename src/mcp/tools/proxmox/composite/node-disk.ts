import { type Item, isItem } from '../shape/fields.ts'
import { items } from './values.ts'

/** Flattens the tree of volume groups and their disks. */
export const diskTree = (data: unknown): Item[] => {
  const roots = isItem(data) ? items(data.children) : items(data)
  return roots.flatMap(group => [
    { ...group, kind: 'vg' },
    ...items(group.children).map(disk => ({ ...disk, kind: 'pv' })),
  ])
}
