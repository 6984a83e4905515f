import { readFileSync, realpathSync } from 'node:fs'
import { programFile } from '../local/program.ts'
import { bind, isSystemPath, type Shown } from './system.ts'

/** What a sandbox with a network list gets instead of a network. */
export interface Outlet {
  readonly shown: readonly Shown[]
  readonly env: Readonly<Record<string, string>>
  /** Starts the forwarder; it reports `proxied` on the status channel when it listens. */
  readonly command: readonly string[]
}

const PORT = 3128
const SOCKET = '/run/deputy/proxy.sock'
const SCRIPT = '/run/deputy/forwarder.mjs'

export const outlet = (proxySocket: string, entries: readonly string[]): Outlet => {
  const node = realpathSync(process.execPath)
  const visible = isSystemPath(node)
  const url = `http://127.0.0.1:${PORT}`
  // The sandbox has a loopback of its own; a listed one is that of this computer and lies behind the proxy.
  const direct = entries.some(entry => /^(localhost|127\.)/i.test(entry)) ? '' : 'localhost,127.0.0.1'
  return {
    shown: [
      bind(proxySocket, SOCKET),
      { kind: 'text', text: readFileSync(programFile('./forwarder.js'), 'utf8'), target: SCRIPT },
      ...(visible ? [] : [bind(node, '/run/deputy/node')]),
    ],
    env: {
      ...Object.fromEntries(
        ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map(name => [name, url]),
      ),
      NO_PROXY: direct,
      no_proxy: direct,
      // Node's own fetch looks at the others only when asked to.
      NODE_USE_ENV_PROXY: '1',
    },
    command: [visible ? node : '/run/deputy/node', '--max-old-space-size=32', SCRIPT, String(PORT), SOCKET],
  }
}
