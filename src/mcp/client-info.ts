import type { ServerContext } from '@modelcontextprotocol/server'
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type McpServer,
} from '@modelcontextprotocol/server'

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** Whether this very request says that its client can follow tasks; the protocol asks for it at each call. */
export const supportsTasks = (ctx: ServerContext): boolean =>
  at(ctx.mcpReq.envelope, CLIENT_CAPABILITIES_META_KEY, 'extensions', TASKS_EXTENSION) !== undefined

/** Who asks, as jobs record it. Names come from outside: they are cut down to what is safe to show anywhere. */
export const originOf = (server: McpServer, ctx: ServerContext): string => {
  const told = at(ctx.mcpReq.envelope, CLIENT_INFO_META_KEY, 'name') ?? server.server.getClientVersion()?.name
  const name = String(told ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .slice(0, 40)
  return name === '' ? 'mcp' : `mcp:${name}`
}

const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  )
