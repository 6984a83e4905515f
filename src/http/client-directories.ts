import type { AllowedDirectories } from '../jobs/allowed-directories.ts'
import type { Call } from './route.ts'

/**
 * The socket belongs to the user's own command line. A token on TCP may be used anywhere, even behind a reverse
 * proxy, so it gives access only to the directories of the configuration.
 */
export const allowedDirectories = ({ env }: Call): AllowedDirectories =>
  env.listener === 'socket' ? 'any' : []
