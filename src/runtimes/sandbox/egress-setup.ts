import { readFileSync, realpathSync } from 'node:fs'
import { proxyEnvironment } from '../../egress/proxy-environment.ts'
import { programFile } from '../local/compiled-file.ts'
import { bind, isSystemPath, type Shown } from './system-mounts.ts'

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
  return {
    shown: [
      bind(proxySocket, SOCKET),
      { kind: 'text', text: readFileSync(programFile('./egress-forwarder.js'), 'utf8'), target: SCRIPT },
      ...(visible ? [] : [bind(node, '/run/deputy/node')]),
    ],
    env: proxyEnvironment(`http://127.0.0.1:${PORT}`, entries),
    command: [visible ? node : '/run/deputy/node', '--max-old-space-size=32', SCRIPT, String(PORT), SOCKET],
  }
}
