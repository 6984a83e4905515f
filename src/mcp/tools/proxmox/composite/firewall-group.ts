import type { Composite } from '../row-context.ts'
import { without } from './values.ts'

/** Proxmox changes a group with the create request and `rename` set to its current name. */
export const renameGroup: Composite = ({ group, rename, comment, digest }, { call }) =>
  call('POST /cluster/firewall/groups', without({ group: rename ?? group, rename: group, comment, digest }))
