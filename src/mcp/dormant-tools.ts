import type { McpServer, RegisteredTool } from '@modelcontextprotocol/server'
import type { Selected, Toolset } from './toolset.ts'

export const isActive = (toolset: Toolset): boolean => toolset.dormant !== true

const refreshers = new WeakMap<McpServer, () => void>()

/** Disables the tools of dormant toolsets, so that the server does not list them. */
export const hideDormantTools = (
  server: McpServer,
  selected: Selected,
  handles: ReadonlyMap<string, RegisteredTool>,
): void => {
  const refresh = (): void => {
    const awake = new Set(
      selected.toolsets
        .filter(toolset => isActive(toolset) || selected.named.has(toolset.name))
        .flatMap(({ tools }) => tools.map(({ name }) => name)),
    )
    let changed = false
    for (const [name, handle] of handles) {
      changed ||= handle.enabled !== awake.has(name)
      handle.enabled = awake.has(name)
    }
    if (changed && server.isConnected()) server.sendToolListChanged()
  }
  refreshers.set(server, refresh)
  refresh()
}

/** Updates the listed tools of a connected server and notifies its client if they changed. */
export const refreshTools = (server: McpServer): void => refreshers.get(server)?.()
