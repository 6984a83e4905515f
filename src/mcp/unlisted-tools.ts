import type { McpServer, RegisteredTool } from '@modelcontextprotocol/server'
import type { Selected, Toolset } from './toolset.ts'

export const isListed = (toolset: Toolset): boolean => toolset.unlisted !== true

const refreshers = new WeakMap<McpServer, () => void>()

/** Disables the tools of unlisted toolsets, so that the server does not list them. */
export const hideUnlistedTools = (
  server: McpServer,
  selected: Selected,
  handles: ReadonlyMap<string, RegisteredTool>,
): void => {
  const refresh = (): void => {
    const shown = new Set(
      selected.toolsets
        .filter(toolset => isListed(toolset) || selected.named.has(toolset.name))
        .flatMap(({ tools }) => tools.map(({ name }) => name)),
    )
    let changed = false
    for (const [name, handle] of handles) {
      changed ||= handle.enabled !== shown.has(name)
      handle.enabled = shown.has(name)
    }
    if (changed && server.isConnected()) server.sendToolListChanged()
  }
  refreshers.set(server, refresh)
  refresh()
}

/** Updates the listed tools of a connected server and notifies its client if they changed. */
export const refreshTools = (server: McpServer): void => refreshers.get(server)?.()
