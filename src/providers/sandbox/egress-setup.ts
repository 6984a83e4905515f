import { readFileSync, realpathSync } from 'node:fs'
import { proxyEnvironment } from '../../egress/proxy-environment.ts'
import { compiledFile } from '../../files/compiled-file.ts'
import { bind, isSystemPath, type MountEntry } from './system-mounts.ts'

/** What a sandbox with an allow-list gets instead of a network. */
export interface EgressSetup {
  readonly mounts: readonly MountEntry[]
  readonly env: Readonly<Record<string, string>>
  /** Starts the forwarder; it reports `proxied` on the status channel when it listens. */
  readonly command: readonly string[]
}

const PORT = 3128
const SOCKET = '/run/deputy/proxy.sock'
const SCRIPT = '/run/deputy/forwarder.mjs'

export const egressSetup = (proxySocket: string, entries: readonly string[]): EgressSetup => {
  const node = realpathSync(process.execPath)
  const visible = isSystemPath(node)
  return {
    mounts: [
      bind(proxySocket, SOCKET),
      {
        kind: 'text',
        text: readFileSync(compiledFile('providers/local/egress-forwarder.js'), 'utf8'),
        target: SCRIPT,
      },
      ...(visible ? [] : [bind(node, '/run/deputy/node')]),
    ],
    env: proxyEnvironment(`http://127.0.0.1:${PORT}`, entries),
    command: [visible ? node : '/run/deputy/node', '--max-old-space-size=32', SCRIPT, String(PORT), SOCKET],
  }
}
