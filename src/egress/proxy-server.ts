import { createServer, type Server } from 'node:http'
import { anywhereElse, createAllowList } from './allow-list.ts'
import { forward, tunnel } from './forward-proxy.ts'
import { createProxyGrant } from './proxy-grant.ts'

export interface ProxyServer {
  readonly server: Server
  /** Closes all connections and takes no more. */
  end(): void
}

/** CONNECT and plain HTTP to the hosts of one allow-list, or to all but this computer (`full`). The caller listens, or hands over connections. */
export const createProxyServer = (
  network: 'full' | readonly string[],
  maxConnections: number,
): ProxyServer => {
  const allowed = network === 'full' ? anywhereElse : createAllowList(network)
  const grant = createProxyGrant({ allowed }, maxConnections)
  const server = createServer((incoming, answer) => void forward(grant, incoming, answer))
  server.on('connection', socket => {
    if (!grant.admit(socket)) socket.destroy()
  })
  server.on('connect', (incoming, client, head) => void tunnel(grant, incoming, client, head))
  return {
    server,
    end: () => {
      server.close()
      grant.end()
    },
  }
}
