import type { ServerContext } from '@modelcontextprotocol/server'
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type McpServer,
} from '@modelcontextprotocol/server'
import { valueAt } from '../jobs/records.ts'

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** Whether the client supports tasks. The protocol makes clients declare it in each request. */
export const supportsTasks = (ctx: ServerContext): boolean =>
  valueAt(ctx.mcpReq.envelope, [CLIENT_CAPABILITIES_META_KEY, 'extensions', TASKS_EXTENSION]) !== undefined

/** The client's name as jobs record it. It is untrusted, so only characters that are safe everywhere are kept. */
export const originOf = (server: McpServer, ctx: ServerContext): string => {
  const reported =
    valueAt(ctx.mcpReq.envelope, [CLIENT_INFO_META_KEY, 'name']) ?? server.server.getClientVersion()?.name
  const name = String(reported ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .slice(0, 40)
  return name === '' ? 'mcp' : `mcp:${name}`
}

/** A capability that the client declares: in each request, or for the session in older revisions of the protocol. */
export const clientCapability = (server: McpServer, ctx: ServerContext, name: string): unknown => {
  const envelope: unknown = ctx.mcpReq.envelope
  return envelope === undefined
    ? valueAt(server.server.getClientCapabilities(), [name])
    : valueAt(envelope, [CLIENT_CAPABILITIES_META_KEY, name])
}
