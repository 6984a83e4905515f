import { isListening } from '../../client/daemon-info.ts'
import { toAppError } from '../../jobs/errors.ts'
import type { Context } from '../context.ts'

/** Makes a running daemon reload its nodes; returns a sentence about the result. */
export const tellDaemon = async (context: Context): Promise<string> => {
  if (!(await isListening(context.home.socket))) return 'The daemon uses it when it starts.'
  try {
    const client = await context.plainClient()
    await client.reload()
    return 'The daemon uses it now.'
  } catch (thrown) {
    const { code, message } = toAppError(thrown)
    // An older daemon has no reload route.
    if (code === 'not_found') return 'The daemon uses it after a restart: deputy daemon restart'
    return `The daemon refused it: ${message}`
  }
}
