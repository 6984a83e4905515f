import type { ControlDeps } from '../deps.ts'
import type { Method, Route } from '../route.ts'

const ENDPOINTS: readonly { path: string; methods: readonly Method[]; summary: string }[] = [
  { path: '/mcp', methods: ['POST', 'GET', 'DELETE'], summary: 'Model Context Protocol, Streamable HTTP' },
  { path: '/sse', methods: ['POST', 'GET'], summary: 'Model Context Protocol, SSE transport of 2024-11-05' },
]

/** The MCP server parses its own query, and offers fewer tools to the read-only token. */
export const mcpRoutes = ({ mcp }: ControlDeps): Route[] =>
  mcp === undefined
    ? []
    : ENDPOINTS.flatMap(({ path, methods, summary }) =>
        methods.map(method => ({
          method,
          path,
          tag: 'mcp',
          readable: true,
          summary,
          responses: { 200: { description: 'JSON-RPC, or a stream of it' } },
          run: ({ request, scope }) => mcp(request, { readOnly: scope === 'read' }),
        })),
      )
