import type { McpServer, McpServerFactory } from '@modelcontextprotocol/server'

/** The bridge on the Unix socket: a process of the same user, started by an MCP client. */
export interface Front {
  /** Where the client started it; undefined when it did not say. */
  readonly directory: string | undefined
}

/** Without a front the client comes over HTTP, perhaps from another computer, and is not asked for directories. */
export type ServerFactory = (
  context: Parameters<McpServerFactory>[0],
  front?: Front,
) => McpServer | Promise<McpServer>

const HEADER = 'x-deputy-directory'
/** Of the encoded path: all headers together may have 16 KiB. */
const MOST_CHARACTERS = 8192

/** Encoded, because headers carry ASCII only. */
export const directoryHeader = (cwd: () => string): Record<string, string> => {
  try {
    const encoded = encodeURIComponent(cwd())
    return encoded.length > MOST_CHARACTERS ? {} : { [HEADER]: encoded }
  } catch {
    // The directory was removed under the bridge.
    return {}
  }
}

export const frontOf = (headers: { get(name: string): string | null }): Front => {
  const encoded = headers.get(HEADER)
  if (encoded === null) return { directory: undefined }
  try {
    return { directory: decodeURIComponent(encoded) }
  } catch {
    return { directory: undefined }
  }
}
