import { chmodSync } from 'node:fs'
import { createServer } from 'node:http'
import { createAllowList } from '../../egress/allow-list.ts'
import { forward, tunnel } from '../../egress/forward-proxy.ts'
import { createProxyGrant } from '../../egress/proxy-grant.ts'

export interface EgressProxy {
  close(): void
}

const MAX_CONNECTIONS = 256

/**
 * The only network access of a sandbox with an allow-list: CONNECT and plain HTTP to listed hosts. It runs in the shim,
 * on a socket that only that sandbox sees.
 */
export const startEgressProxy = async (path: string, entries: readonly string[]): Promise<EgressProxy> => {
  const grant = createProxyGrant({ allowed: createAllowList(entries) }, MAX_CONNECTIONS)
  const server = createServer((incoming, answer) => void forward(grant, incoming, answer))
  server.on('connection', socket => {
    if (!grant.admit(socket)) socket.destroy()
  })
  server.on('connect', (incoming, client, head) => void tunnel(grant, incoming, client, head))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  // The directory is private. The job inside the sandbox has another user id than the shim.
  chmodSync(path, 0o666)
  return {
    close: () => {
      server.close()
      grant.end()
    },
  }
}
