import { createHash } from 'node:crypto'
import { homedir, tmpdir, userInfo } from 'node:os'
import { join, resolve } from 'node:path'

/** The directories of one installation. Two homes share nothing. */
export interface Home {
  readonly configDir: string
  readonly stateDir: string
  readonly cacheDir: string
  readonly runtimeDir: string
  readonly configFile: string
  /** Certificates of Proxmox hosts that the user trusts. */
  readonly trustedHosts: string
  /** What VMs on this computer boot from. */
  readonly vmImages: string
  readonly socket: string
  readonly log: string
}

/** DEPUTY_HOME puts everything under one directory; otherwise the XDG directories are used. */
export const resolveHome = (env: Readonly<Record<string, string | undefined>>): Home => {
  const own = env.DEPUTY_HOME ? resolve(env.DEPUTY_HOME) : undefined
  const user = env.HOME || homedir()
  const xdg = (name: string, fallback: string): string => join(env[name] || join(user, fallback), 'deputy')
  const configDir = own ? join(own, 'config') : xdg('XDG_CONFIG_HOME', '.config')
  const stateDir = own ? join(own, 'state') : xdg('XDG_STATE_HOME', '.local/state')
  const cacheDir = own ? join(own, 'cache') : xdg('XDG_CACHE_HOME', '.cache')
  const runtimeDir = fitSocketPath(
    own
      ? join(own, 'run')
      : env.XDG_RUNTIME_DIR
        ? join(env.XDG_RUNTIME_DIR, 'deputy')
        : join(stateDir, 'run'),
  )
  return {
    configDir,
    stateDir,
    cacheDir,
    runtimeDir,
    configFile: join(configDir, 'config.yaml'),
    trustedHosts: join(configDir, 'proxmox-hosts'),
    vmImages: join(stateDir, 'microvm', 'images'),
    socket: join(runtimeDir, SOCKET),
    log: join(stateDir, 'daemon.log'),
  }
}

/** Directories that no job may read: they hold the database, the tokens, the configuration and the socket. */
export const ownDirectories = ({ stateDir, configDir, runtimeDir }: Home): string[] => [
  stateDir,
  configDir,
  runtimeDir,
]

const SOCKET = 'deputy.sock'

/** The kernel limits the path of a Unix socket to 107 bytes; a longer one is replaced by a directory in /tmp. */
const MAX_SOCKET_PATH = 107

const fitSocketPath = (directory: string): string => {
  if (Buffer.byteLength(join(directory, SOCKET)) <= MAX_SOCKET_PATH) return directory
  const digest = createHash('sha256').update(directory).digest('hex').slice(0, 16)
  return join(tmpdir(), `deputy-${userInfo().uid}-${digest}`)
}
