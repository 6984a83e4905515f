import { InMemoryServerEventBus, type ServerEventBus } from '@modelcontextprotocol/server'
import { openTemplates } from '../../../src/config/manifest-templates.ts'
import { createControlApp } from '../../../src/http/app.ts'
import { listenLoopback } from '../../../src/http/listen.ts'
import { createSessionTickets } from '../../../src/http/session-tickets.ts'
import type { ServerFactory } from '../../../src/mcp/bridge-client.ts'
import { createMcpHttp } from '../../../src/mcp/mcp-http.ts'
import { createServerFactory } from '../../../src/mcp/server-factory.ts'
import type { Selection } from '../../../src/mcp/toolset.ts'
import { createUpdates } from '../../../src/mcp/updates.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createMemoryDeputy, type MemoryDeputy } from '../memory-deputy.ts'
import { dependencies } from './clients.ts'

export interface HttpServer {
  readonly url: string
  readonly deputy: MemoryDeputy
  [Symbol.asyncDispose](): Promise<void>
}

export interface HttpServerOptions {
  /** Absent: the plain product. */
  makeFactory?(bus: ServerEventBus): (selection: Selection) => ServerFactory
}

/**
 * The product's HTTP stack on a port of its own. Outside tools cannot send a token, so requests without one get the
 * full one here; Host and Origin are checked as ever.
 */
export const startHttpServer = async ({ makeFactory }: HttpServerOptions = {}): Promise<HttpServer> => {
  const deputy = createMemoryDeputy()
  const updates = createUpdates(deputy)
  const bus = new InMemoryServerEventBus()
  const closing = new AbortController()
  const factoryFor =
    makeFactory?.(bus) ?? (selection => createServerFactory({ ...dependencies(deputy), ...selection }))
  const mcp = createMcpHttp({ factoryFor, updates, bus })
  const app = createControlApp({
    sessions: createSessionTickets([]),
    templates: openTemplates('/nowhere'),
    deputy,
    daemon: {
      version: '1.2.3',
      socket: '/nowhere',
      home: '/nowhere',
      startedAt: Date.now(),
      url: () => null,
      stop: () => {},
      reload: () => ({ added: [], removed: [], changed: [], restart: [] }),
    },
    tokens: { full: 'full-token', read: 'read-token', sessionKey: 'session-key' },
    mcp: mcp.fetch,
    explainConfig: () => [],
    log: { error: () => {}, warn: () => {} },
    metrics: createMetrics(),
    closing: closing.signal,
  })
  const listener = await listenLoopback(
    {
      fetch: (request, env) => {
        if (request.headers.has('authorization')) return app.fetch(request, env)
        const headers = new Headers(request.headers)
        headers.set('authorization', 'Bearer full-token')
        return app.fetch(new Request(request, { headers }), env)
      },
    },
    { host: '127.0.0.1', port: 0 },
  )
  return {
    url: `${listener.url}/mcp`,
    deputy,
    [Symbol.asyncDispose]: async () => {
      closing.abort()
      await mcp.close()
      updates.close()
      await listener.close(100)
    },
  }
}
