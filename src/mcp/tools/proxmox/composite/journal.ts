import type { Composite } from '../context.ts'

/** Proxmox calls the number of lines `lastentries`. */
export const journal: Composite = ({ node, limit }, { call }) =>
  call('GET /nodes/{node}/journal', { node, lastentries: limit ?? 100 })
