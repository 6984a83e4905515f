import { resolveHome } from '../../config/home.ts'
import { VERSION } from '../../version.ts'
import { carriesEnvironment } from '../session-environment.ts'
import { openStream, type Stream } from './open-stream.ts'

const ATTEMPTS = 5
const PAUSE_MS = 100

/**
 * Connects to the daemon of this home. Starts a daemon if none runs, and replaces an idle daemon of another version; a
 * busy one is used as it is. The code for that is loaded only when it is needed.
 */
export const connectDaemon = async (
  env: NodeJS.ProcessEnv,
  headers: Readonly<Record<string, string>>,
): Promise<Stream> => {
  const home = resolveHome(env)
  const open = () => openStream(home.socket, { ...headers, 'x-deputy-version': VERSION })
  const ensure = async () => {
    const [{ ensureDaemon }, { withoutNodeVariables }] = await Promise.all([
      import('../../client/ensure-daemon.ts'),
      import('../../config/daemon-environment.ts'),
    ])
    // Settings that do not fit into the headers reach the daemon only in its environment.
    await ensureDaemon(home, {
      version: VERSION,
      env: carriesEnvironment(headers) ? withoutNodeVariables(env) : env,
    })
  }
  let stream = await open().catch(() => undefined)
  if (stream !== undefined && stream.version !== VERSION) {
    stream.socket.destroy()
    stream = undefined
  }
  // The daemon can exit or be replaced between its start and our connection, for example by another bridge.
  for (let attempt = 1; stream === undefined; attempt++) {
    await ensure()
    try {
      stream = await open()
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS * attempt))
    }
  }
  return stream
}
