import { resolveHome } from '../../config/home.ts'
import { VERSION } from '../../version.ts'
import { openStream, type Stream } from './open-stream.ts'

const ATTEMPTS = 5
const PAUSE_MS = 100

/**
 * A connection to the daemon of this home. Starts one when none runs, and has an idle older one replaced; a busy
 * older one is used as it is. What that takes is only loaded when it is needed.
 */
export const connectDaemon = async (
  env: NodeJS.ProcessEnv,
  headers: Readonly<Record<string, string>>,
): Promise<Stream> => {
  const home = resolveHome(env)
  const open = () => openStream(home.socket, { ...headers, 'x-deputy-version': VERSION })
  const ensure = async () => {
    const { ensureDaemon } = await import('../../control/ensure-daemon.ts')
    await ensureDaemon(home, { version: VERSION, env })
  }
  let stream = await open().catch(() => undefined)
  if (stream !== undefined && stream.version !== VERSION) {
    stream.socket.destroy()
    stream = undefined
  }
  // It can die or be replaced between the start and our connection; two front ends may start at once.
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
