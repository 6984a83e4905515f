import { isRecord } from '../../../../jobs/records.ts'
import type { Item } from '../shape/fields.ts'
import { items } from './values.ts'

/** Flattens the tree of volume groups and their disks. */
export const diskTree = (data: unknown): Item[] => {
  const roots = isRecord(data) ? items(data.children) : items(data)
  return roots.flatMap(group => [
    { ...group, kind: 'vg' },
    ...items(group.children).map(disk => ({ ...disk, kind: 'pv' })),
  ])
}
