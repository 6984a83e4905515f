import type { Composite } from '../row-context.ts'
import { without } from './values.ts'

/** Proxmox changes a group by creating it again with `rename` set to its present name. */
export const renameGroup: Composite = ({ group, rename, comment, digest }, { call }) =>
  call('POST /cluster/firewall/groups', without({ group: rename ?? group, rename: group, comment, digest }))
