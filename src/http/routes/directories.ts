import type { Directories } from '../../jobs/directories.ts'
import type { Call } from '../route.ts'

/**
 * The socket is the user's own command line. A token on TCP may be anywhere, behind a reverse proxy too: it gives no
 * directory of this computer but those of the configuration.
 */
export const directoriesOf = ({ env }: Call): Directories => (env.listener === 'socket' ? 'any' : [])
