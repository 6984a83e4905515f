import type { McpServer, McpServerFactory } from '@modelcontextprotocol/server'

/** A client that connects through the bridge on the Unix socket: a process of the same user. */
export interface BridgeClient {
  /** The directory that the client started the bridge in; undefined if unknown. */
  readonly directory: string | undefined
}

/** `bridge` is undefined for HTTP clients. They may run on another computer, so the server does not ask for their roots. */
export type ServerFactory = (
  context: Parameters<McpServerFactory>[0],
  bridge?: BridgeClient,
) => McpServer | Promise<McpServer>

const HEADER = 'x-deputy-directory'
/** Limits the encoded path: all headers together may have 16 KiB. */
const MAX_CHARACTERS = 8192

/** The path is URL-encoded because headers carry ASCII only. */
export const directoryHeader = (cwd: () => string): Record<string, string> => {
  try {
    const encoded = encodeURIComponent(cwd())
    return encoded.length > MAX_CHARACTERS ? {} : { [HEADER]: encoded }
  } catch {
    // The directory of the bridge was deleted.
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
