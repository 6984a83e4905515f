import type { ControlDeps } from '../deps.ts'
import type { Method, Route } from '../route.ts'

const METHODS: readonly Method[] = ['POST', 'GET', 'DELETE']

/** The MCP server parses its own query, and offers fewer tools to the read-only token. */
export const mcpRoutes = ({ mcp }: ControlDeps): Route[] =>
  mcp === undefined
    ? []
    : METHODS.map(method => ({
        method,
        path: '/mcp',
        tag: 'mcp',
        readable: true,
        summary: 'Model Context Protocol, Streamable HTTP',
        responses: { 200: { description: 'JSON-RPC, or a stream of it' } },
        run: ({ request, scope }) => mcp(request, { readOnly: scope === 'read' }),
      }))
