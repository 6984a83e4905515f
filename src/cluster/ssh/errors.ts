import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { AppError } from '../../jobs/errors.ts'
import { displayTarget, hostKeyName, type SshTarget } from './arguments.ts'

export type SshFailure =
  | 'unreachable'
  | 'auth-failed'
  | 'host-key-changed'
  | 'host-key-unknown'
  | 'timed-out'
  | 'unresolved'
  | 'busy'
  | 'lost'

/** Reads what ssh printed when it, not the command, failed. */
export const classifySshFailure = (stderr: string): SshFailure => {
  for (const [failure, pattern] of PATTERNS) if (pattern.test(stderr)) return failure
  return 'unreachable'
}

export const sshError = (target: SshTarget, stderr: string, knownHosts: string): AppError =>
  failureError(target, classifySshFailure(stderr), { stderr, knownHosts })

/**
 * Whether ssh said that it made no connection at all, so nothing was sent. It says so also of one that was to share a
 * connection which died, as it then tries one of its own.
 */
export const neverConnected = (error: unknown): boolean =>
  sshFailureOf(error) !== undefined && NO_CONNECTION.test((error as AppError).message)

const NO_CONNECTION =
  /ssh: connect to host|during banner exchange|kex_exchange_identification|Could not resolve hostname|Permission denied \(|Host key verification failed/

export const failureError = (
  target: SshTarget,
  failure: SshFailure,
  context: { stderr?: string; knownHosts?: string } = {},
): AppError => {
  const where = `node ${target.id} (${displayTarget(target)})`
  const { message, hint, retryable } = EXPLANATIONS[failure](where, target, context.knownHosts ?? '')
  const said = lastLine(context.stderr ?? '')
  return new AppError(
    failure === 'timed-out' ? 'timeout' : 'unavailable',
    said ? `${message}: ${said}` : message,
    {
      hint,
      retryable,
      details: { node: target.id, failure },
    },
  )
}

/** The failure an error of this module stands for. */
export const sshFailureOf = (error: unknown): SshFailure | undefined => {
  if (!(error instanceof AppError) || typeof error.details !== 'object' || error.details === null)
    return undefined
  const { failure } = error.details as { failure?: SshFailure }
  return failure
}

const PATTERNS: readonly (readonly [SshFailure, RegExp])[] = [
  ['host-key-changed', /REMOTE HOST IDENTIFICATION HAS CHANGED|differs from the key for/i],
  ['host-key-unknown', /Host key verification failed|No .* host key is known for/i],
  [
    'auth-failed',
    /Permission denied|Too many authentication failures|no mutual signature|Authentication failed/i,
  ],
  ['timed-out', /timed out|Timeout, server/i],
  ['unresolved', /Could not resolve hostname|Name or service not known|nodename nor servname/i],
  ['busy', /Session open refused|open failed: administratively prohibited|mux_client_request_session/i],
  [
    'unreachable',
    /No route to host|Connection refused|unreachable|Host is down|Connection (?:closed|reset)|Broken pipe/i,
  ],
]

interface Explanation {
  message: string
  hint: string
  retryable: boolean
}

const EXPLANATIONS: Record<
  SshFailure,
  (where: string, target: SshTarget, knownHosts: string) => Explanation
> = {
  unreachable: (where, target) => ({
    message: `${where} cannot be reached`,
    hint: `Is it on, and does its sshd listen? Try: ${byHand(target)}`,
    retryable: true,
  }),
  'auth-failed': (where, target) => ({
    message: `${where} did not accept our login${isMissing(target.identity) ? `, and its key ${target.identity} does not exist here` : ''}`,
    hint: `Put a key there (${byHand(target, 'ssh-copy-id')}) or name one: --identity of deputy nodes add, identity in the node's entry. Passwords are never asked for.`,
    retryable: false,
  }),
  'host-key-changed': (where, target, knownHosts) => ({
    message: `${where} shows another host key than before; somebody may be in between`,
    hint: `If the machine was reinstalled: ssh-keygen -f ${knownHosts} -R '${hostKeyName(target)}'`,
    retryable: false,
  }),
  'host-key-unknown': (where, target, knownHosts) => ({
    message: `the host key of ${where} is not known`,
    hint: `Add it to ${knownHosts}: ssh-keyscan ${target.port === undefined ? '' : `-p ${target.port} `}${target.host}, after checking it, or set ssh.hostKeys to accept-new.`,
    retryable: false,
  }),
  'timed-out': where => ({
    message: `${where} did not answer in time`,
    hint: 'deputy nodes check shows which nodes answer; cluster.ssh.connectTimeout and cluster.ssh.timeout are how long one may take.',
    retryable: true,
  }),
  unresolved: (where, target) => ({
    message: `the name of ${where} has no address`,
    hint: `Check the host, or give the node a fallback address. Try: getent hosts ${target.host}`,
    retryable: true,
  }),
  busy: where => ({
    message: `${where} refuses another session`,
    hint: 'Raise MaxSessions in its sshd_config or lower max_tasks.',
    retryable: true,
  }),
  lost: where => ({
    message: `the connection to ${where} was lost`,
    hint: 'The command goes on there; Deputy attaches to it again.',
    retryable: true,
  }),
}

/** ssh says nothing of a key file that is not there. */
const isMissing = (identity: string | undefined): boolean =>
  identity !== undefined && !existsSync(identity.replace(/^~(?=\/)/, homedir()))

/** The same by hand, to copy. */
const byHand = ({ host, user, port, jump }: SshTarget, program = 'ssh'): string =>
  [
    program,
    ...(port === undefined ? [] : ['-p', port]),
    ...(jump === undefined || program !== 'ssh' ? [] : ['-J', jump]),
    user === undefined ? host : `${user}@${host}`,
  ].join(' ')

const lastLine = (stderr: string): string =>
  stderr
    .split('\n')
    .map(line => line.trim())
    .findLast(line => line !== '' && !/^[@\s]+$/.test(line))
    ?.slice(0, 300) ?? ''
