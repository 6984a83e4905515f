import {
  createMcpHandler,
  InMemoryServerEventBus,
  isJsonContentType,
  isLegacyRequest,
  type McpHttpHandler,
  type ServerEventBus,
} from '@modelcontextprotocol/server'
import type { ServerFactory } from './bridge-client.ts'
import { createLegacySessions } from './legacy-sessions.ts'
import { MAX_MESSAGE_BYTES } from './message-limit.ts'
import { createSseSessions } from './sse-sessions.ts'
import type { Selection } from './toolset.ts'
import { selectionKey, selectionOf } from './toolset-selection.ts'
import { announceUpdates, type Updates } from './updates.ts'

export interface McpHttpOptions {
  factoryFor(selection: Selection): ServerFactory
  readonly updates: Updates
  /** Carries notifications to listening clients. Default: a bus with only the updates. */
  readonly bus?: ServerEventBus
  readonly onerror?: (error: Error) => void
}

interface McpCaller {
  /** The token has the read-only scope: only tools that change nothing are served, whatever the request selects. */
  readonly readOnly: boolean
}

export interface McpHttp {
  /** The caller must have checked Host, Origin and the token. */
  fetch(request: Request, caller: McpCaller): Promise<Response>
  close(): Promise<void>
}

/**
 * MCP over Streamable HTTP: stateless for the current revision, with sessions for the older ones. `/sse` has the
 * transport that came before it.
 */
export const createMcpHttp = (options: McpHttpOptions): McpHttp => {
  const { factoryFor, updates, onerror, bus = new InMemoryServerEventBus(onerror) } = options
  const handlers = new Map<string, McpHttpHandler>()
  const stop = updates.subscribe(update =>
    bus.publish(
      update.kind === 'resource'
        ? { kind: 'resource_updated', uri: update.uri }
        : { kind: update.kind === 'list' ? 'resources_list_changed' : 'tools_list_changed' },
    ),
  )
  const report = onerror ? { onerror } : {}

  const handlerFor = (selection: Selection): McpHttpHandler => {
    const key = selectionKey(selection)
    const known = handlers.get(key)
    if (known !== undefined) return known
    const factory = factoryFor(selection)
    // Only the context is passed: over HTTP there is no bridge.
    const handler = createMcpHandler(context => factory(context), {
      legacy: 'reject',
      bus,
      maxRequestBodySize: MAX_MESSAGE_BYTES,
      ...report,
    })
    // Clients choose the selection, so the number of cached handlers is limited.
    if (handlers.size < MAX_HANDLERS) handlers.set(key, handler)
    return handler
  }

  const open = async (request: Request, scope: string) => {
    const server = await factoryFor(chosen(request, scope === READ))({ era: 'legacy', requestInfo: request })
    announceUpdates(server, 'legacy', updates)
    return server
  }
  const sessions = createLegacySessions({ ...report, open })
  const sseSessions = createSseSessions({ ...report, open })

  return {
    fetch: async (request, { readOnly }) => {
      if (request.method === 'POST' && !isJsonContentType(request.headers.get('content-type')))
        return notJson()
      if (new URL(request.url).pathname === '/sse')
        return sseSessions.handle(request, readOnly ? READ : WRITE)
      const legacy = await isLegacyRequest(request, undefined, { maxRequestBodySize: MAX_MESSAGE_BYTES })
      return legacy
        ? sessions.handle(request, readOnly ? READ : WRITE)
        : handlerFor(chosen(request, readOnly)).fetch(request)
    },
    close: async () => {
      stop()
      sessions.close()
      sseSessions.close()
      await Promise.all([...handlers.values()].map(handler => handler.close()))
    },
  }
}

const MAX_HANDLERS = 64
const READ = 'read'
const WRITE = 'write'

const chosen = (request: Request, readOnly: boolean): Selection => {
  const selection = selectionOf(request.headers, new URL(request.url).searchParams)
  return readOnly ? { ...selection, readOnly } : selection
}

const notJson = (): Response =>
  Response.json(
    { jsonrpc: '2.0', error: { code: -32000, message: 'Content-Type must be application/json.' }, id: null },
    { status: 415 },
  )
