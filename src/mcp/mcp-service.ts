import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Environment } from '../proxmox/env-variables.ts'
import type { ServerFactory } from './bridge-client.ts'
import { createMcpHttp, type McpHttp } from './mcp-http.ts'
import { createMcpUpgrade, type McpSession } from './mcp-upgrade.ts'
import { createServerFactory, type McpOptions } from './server-factory.ts'
import type { Selection, Toolset } from './toolset.ts'
import { selectionKey } from './toolset-selection.ts'
import { createUpdates } from './updates.ts'

export interface McpDependencies extends Omit<McpOptions, 'toolsets' | 'readOnly' | 'settings'> {
  /** Called with errors of the transport. They are usually caused by clients. */
  readonly onrefused?: (error: Error) => void
  /** Toolsets with the client's own Proxmox and cluster settings; undefined where the daemon's are the same. */
  sessionToolsets?(environment: Environment): Promise<SessionToolsets> | undefined
}

export interface SessionToolsets {
  readonly available: readonly Toolset[]
  /** Problems with the settings, one sentence each. */
  readonly notes: readonly string[]
  /** Called when a client connects; the returned function is called when it has disconnected. */
  join?(): () => void
}

/** The MCP endpoints of the daemon. */
export interface McpService {
  /** Serves `/mcp` of the control app. */
  readonly http: McpHttp
  /** Handles the `upgrade` event of the server on the Unix socket. Use it for no other server: it checks no token. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  connections(): number
  /** Call this when a toolset may have become listed or unlisted. */
  toolsChanged(): void
  close(): Promise<void>
}

const MAX_FACTORIES = 64

export const createMcpService = (dependencies: McpDependencies): McpService => {
  const factories = new Map<string, ServerFactory>()
  const factoryFor = (selection: Selection): ServerFactory => {
    const key = selectionKey(selection)
    const known = factories.get(key)
    if (known !== undefined) return known
    const factory = createServerFactory({ ...dependencies, ...selection })
    // Clients choose the selection, so the number of cached factories is limited.
    if (factories.size < MAX_FACTORIES) factories.set(key, factory)
    return factory
  }
  const openSession = (selection: Selection, environment: Environment): McpSession => {
    const own = dependencies.sessionToolsets?.(environment)
    if (own === undefined) return { factory: factoryFor(selection), close: () => {} }
    const joined = own.then(toolsets => ({ ...toolsets, leave: toolsets.join?.() }))
    const made = joined.then(({ available, notes }) =>
      createServerFactory({
        ...dependencies,
        ...selection,
        available,
        instructionsContext: settings => ({ ...dependencies.instructionsContext(settings), notes }),
      }),
    )
    return {
      factory: async (context, bridge) => (await made)(context, bridge),
      close: () => void joined.then(({ leave }) => leave?.(), dependencies.onerror),
    }
  }
  const { deputy, version, onrefused } = dependencies
  const updates = createUpdates(deputy)
  const report = onrefused && { onerror: onrefused }
  const http = createMcpHttp({ factoryFor, updates, ...report })
  const upgrades = createMcpUpgrade({ openSession, updates, version, ...report })
  return {
    http,
    upgrade: upgrades.handle,
    connections: upgrades.count,
    toolsChanged: updates.toolsChanged,
    close: async () => {
      upgrades.close()
      await http.close()
      updates.close()
    },
  }
}
