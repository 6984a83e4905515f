import { type Item, isItem } from '../shape/fields.ts'
import { items } from './values.ts'

/** Volume groups and the disks under them come as a tree. */
export const diskTree = (data: unknown): Item[] => {
  const roots = isItem(data) ? items(data.children) : items(data)
  return roots.flatMap(group => [
    { ...group, kind: 'vg' },
    ...items(group.children).map(disk => ({ ...disk, kind: 'pv' })),
  ])
}
