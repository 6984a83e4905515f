import type { Composite } from '../row-context.ts'
import { without } from './values.ts'

const LINES = 100

/** Proxmox calls the number of lines `lastentries`. */
export const journal: Composite = ({ node, limit }, { call }) =>
  call('GET /nodes/{node}/journal', { node, lastentries: limit ?? LINES })

/** The syslog API pages from the oldest line. To get the newest lines, read the journal or up to 5000 syslog lines. */
export const syslog: Composite = (args, context) => {
  const { node, service, since, until } = args
  if (service === undefined && since === undefined && until === undefined) return journal(args, context)
  return context.call('GET /nodes/{node}/syslog', without({ node, service, since, until, limit: 5000 }))
}

/** `limit: 0` returns all lines; the default is the first fifty. */
export const replicationLog: Composite = ({ node, id }, { call }) =>
  call('GET /nodes/{node}/replication/{id}/log', { node, id, limit: 0 })
