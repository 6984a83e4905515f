import { chmodSync } from 'node:fs'
import { createProxyServer } from '../../egress/proxy-server.ts'

export interface EgressProxy {
  close(): void
}

const MAX_CONNECTIONS = 256

/**
 * The only network access of a sandbox with an allow-list: CONNECT and plain HTTP to listed hosts. It runs in the shim,
 * on a socket that only that sandbox sees.
 */
export const startEgressProxy = async (path: string, entries: readonly string[]): Promise<EgressProxy> => {
  const { server, end } = createProxyServer(entries, MAX_CONNECTIONS)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  // The directory is private. The job inside the sandbox has another user id than the shim.
  chmodSync(path, 0o666)
  return { close: end }
}
