import { isIPv6 } from 'node:net'
import { AppError } from '../../jobs/errors.ts'
import { isHost, isJump, isUser } from '../hosts.ts'

export interface SshTarget {
  id: string
  /** As the user wrote it: the name ssh_config matches on and the host key belongs to. */
  host: string
  /** Where to connect, when our own lookup found it. */
  address?: string | undefined
  user?: string | undefined
  port?: number | undefined
  identity?: string | undefined
  jump?: string | undefined
}

export interface SshSettings {
  /** Our own known_hosts; new keys go here. */
  knownHosts: string
  hostKeys?: 'accept-new' | 'strict'
  /** Replaces the user's ssh_config; `none` for no file at all. */
  configFile?: string | undefined
  connectTimeoutSeconds?: number
  /** From the connection to the first word of the far side. */
  answerTimeoutSeconds?: number
  aliveSeconds?: number
  aliveCount?: number
}

/**
 * The options of every ssh we start, up to and with the host. What runs on the far side is a constant of ours and
 * the words come from validated fields only, so nothing a user or a model writes can become an option.
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
  // A jump host resolves the name from where it stands.
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

/** How known_hosts names the node: by the name the user gave, wherever it is found today. */
export const hostKeyName = (target: SshTarget): string =>
  target.port === undefined || target.port === 22 ? target.host : `[${target.host}]:${target.port}`

const assertTarget = (target: SshTarget): void => {
  const wrong =
    (!isHost(target.host) && `host "${target.host}"`) ||
    (target.address !== undefined && !isHost(target.address) && `address "${target.address}"`) ||
    (target.user !== undefined && !isUser(target.user) && `user "${target.user}"`) ||
    (target.jump !== undefined && !isJump(target.jump) && `jump host "${target.jump}"`) ||
    (target.port !== undefined &&
      !(Number.isInteger(target.port) && target.port > 0 && target.port < 65536) &&
      'port') ||
    (target.identity !== undefined && /^-|\p{Cc}/u.test(target.identity) && 'identity')
  if (wrong) throw new AppError('invalid', `node ${target.id}: the ${wrong} is not one that ssh may be given`)
}

/** ssh splits this value at spaces and expands `%`. */
const quoted = (path: string): string => `"${path.replaceAll('%', '%%').replaceAll('"', '\\"')}"`

export const displayTarget = (target: SshTarget): string => {
  const host = isIPv6(target.host) ? `[${target.host}]` : target.host
  return `${target.user ? `${target.user}@` : ''}${host}${target.port ? `:${target.port}` : ''}`
}
