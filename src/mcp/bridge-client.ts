import type { McpServer, McpServerFactory } from '@modelcontextprotocol/server'

/** The bridge on the Unix socket: a process of the same user, started by an MCP client. */
export interface BridgeClient {
  /** Where the client started it; undefined when it did not say. */
  readonly directory: string | undefined
}

/** `bridge` is undefined for HTTP clients. They may run on another computer, so the server does not ask for their roots. */
export type ServerFactory = (
  context: Parameters<McpServerFactory>[0],
  bridge?: BridgeClient,
) => McpServer | Promise<McpServer>

const HEADER = 'x-deputy-directory'
/** Of the encoded path: all headers together may have 16 KiB. */
const MAX_CHARACTERS = 8192

/** Encoded, because headers carry ASCII only. */
export const directoryHeader = (cwd: () => string): Record<string, string> => {
  try {
    const encoded = encodeURIComponent(cwd())
    return encoded.length > MAX_CHARACTERS ? {} : { [HEADER]: encoded }
  } catch {
    // The directory was removed under the bridge.
    return {}
  }
}

export const bridgeClientOf = (headers: { get(name: string): string | null }): BridgeClient => {
  const encoded = headers.get(HEADER)
  if (encoded === null) return { directory: undefined }
  try {
    return { directory: decodeURIComponent(encoded) }
  } catch {
    return { directory: undefined }
  }
}
