import { isIPv6 } from 'node:net'
import { AppError } from '../../jobs/errors.ts'
import { isHostName, isJumpList, isUserName } from '../ssh-destination.ts'

export interface SshTarget {
  id: string
  /** The name from the configuration; ssh_config and known_hosts refer to it. */
  host: string
  /** The address that Deputy resolved; ssh resolves the host itself without one. */
  address?: string | undefined
  user?: string | undefined
  port?: number | undefined
  identity?: string | undefined
  jump?: string | undefined
}

export interface SshSettings {
  /** Deputy's own known_hosts; ssh adds new keys here. */
  knownHosts: string
  hostKeys?: 'accept-new' | 'strict'
  /** Replaces the user's ssh_config; `none` for no file. */
  configFile?: string | undefined
  connectTimeoutSeconds?: number
  /** From the connection to the first output of the node. */
  answerTimeoutSeconds?: number
  aliveSeconds?: number
  aliveCount?: number
}

/**
 * The options of every ssh process, up to the host. All values come from validated fields, and the remote command is a
 * constant, so text from a user or a model cannot become an option.
 */
export const sshArguments = (target: SshTarget, settings: SshSettings): string[] => {
  assertTarget(target)
  const options: Record<string, string> = {
    BatchMode: 'yes',
    ConnectTimeout: String(Math.max(1, Math.ceil(settings.connectTimeoutSeconds ?? 5))),
    ConnectionAttempts: '1',
    ServerAliveInterval: String(settings.aliveSeconds ?? 5),
    ServerAliveCountMax: String(settings.aliveCount ?? 3),
    StrictHostKeyChecking: settings.hostKeys === 'strict' ? 'yes' : 'accept-new',
    UserKnownHostsFile: `${quoted(settings.knownHosts)} ~/.ssh/known_hosts`,
    HostKeyAlias: hostKeyName(target),
    UpdateHostKeys: 'no',
    LogLevel: 'ERROR',
    ClearAllForwardings: 'yes',
    ForwardAgent: 'no',
    ForwardX11: 'no',
    RequestTTY: 'no',
    RemoteCommand: 'none',
    EscapeChar: 'none',
    PermitLocalCommand: 'no',
    ControlPersist: 'no',
  }
  // The jump host resolves the name in its own network.
  if (target.address !== undefined && target.jump === undefined) options.HostName = target.address
  if (target.identity !== undefined) options.IdentitiesOnly = 'yes'
  return [
    ...(settings.configFile === undefined ? [] : ['-F', settings.configFile]),
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    ...(target.user === undefined ? [] : ['-l', target.user]),
    ...(target.port === undefined ? [] : ['-p', String(target.port)]),
    ...(target.identity === undefined ? [] : ['-i', target.identity]),
    ...(target.jump === undefined ? [] : ['-J', target.jump]),
  ]
}

/** The name of the node in known_hosts: its configured name, so the key stays valid when the address changes. */
export const hostKeyName = (target: SshTarget): string =>
  target.port === undefined || target.port === 22 ? target.host : `[${target.host}]:${target.port}`

const assertTarget = (target: SshTarget): void => {
  const wrong =
    (!isHostName(target.host) && `host '${target.host}'`) ||
    (target.address !== undefined && !isHostName(target.address) && `address '${target.address}'`) ||
    (target.user !== undefined && !isUserName(target.user) && `user '${target.user}'`) ||
    (target.jump !== undefined && !isJumpList(target.jump) && `jump host '${target.jump}'`) ||
    (target.port !== undefined &&
      !(Number.isInteger(target.port) && target.port > 0 && target.port < 65536) &&
      'port') ||
    (target.identity !== undefined && /^-|\p{Cc}/u.test(target.identity) && 'identity')
  if (wrong) throw new AppError('invalid', `Node ${target.id} has an invalid ${wrong}.`)
}

/** Protects a path from ssh, which splits this value at spaces and expands `%`. */
const quoted = (path: string): string => `"${path.replaceAll('%', '%%').replaceAll('"', '\\"')}"`

export const displayTarget = (target: SshTarget): string => {
  const host = isIPv6(target.host) ? `[${target.host}]` : target.host
  return `${target.user ? `${target.user}@` : ''}${host}${target.port ? `:${target.port}` : ''}`
}
