import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { AppError } from '../../jobs/errors.ts'
import { displayTarget, hostKeyName, type SshTarget } from './ssh-arguments.ts'

type SshFailure =
  | 'unreachable'
  | 'auth-failed'
  | 'host-key-changed'
  | 'host-key-unknown'
  | 'timed-out'
  | 'unresolved'
  | 'busy'
  | 'lost'

/** Classifies a failure of ssh itself by its error output. */
export const classifySshFailure = (stderr: string): SshFailure => {
  for (const [failure, pattern] of PATTERNS) if (pattern.test(stderr)) return failure
  return 'unreachable'
}

export const sshError = (target: SshTarget, stderr: string, knownHosts: string): AppError =>
  failureError(target, classifySshFailure(stderr), { stderr, knownHosts })

/**
 * Whether ssh reported that it did not connect, so nothing was sent. This includes a session whose shared connection
 * died: ssh then tries to open its own.
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
  const node = `node ${target.id} (${displayTarget(target)})`
  const { message, hint, retryable } = EXPLANATIONS[failure](node, target, context.knownHosts ?? '')
  const detail = lastLine(context.stderr ?? '')
  const sentence = message.charAt(0).toUpperCase() + message.slice(1)
  return new AppError(
    failure === 'timed-out' ? 'timeout' : 'unavailable',
    detail ? `${sentence}: ${detail}` : sentence,
    {
      hint,
      retryable,
      details: { node: target.id, failure },
    },
  )
}

/** The kind of failure of an error from this module; undefined for other errors. */
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

const EXPLANATIONS: Record<SshFailure, (node: string, target: SshTarget, knownHosts: string) => Explanation> =
  {
    unreachable: (node, target) => ({
      message: `${node} cannot be reached`,
      hint: `Check that it is on and that its sshd is running. Try: ${manualCommand(target)}`,
      retryable: true,
    }),
    'auth-failed': (node, target) => ({
      message: `${node} rejected the login${isMissing(target.identity) ? `; its key ${target.identity} does not exist on this computer` : ''}`,
      hint: `Install a key: ${manualCommand(target, 'ssh-copy-id')}. Or set identity for the node (deputy nodes add --identity). Deputy never uses passwords.`,
      retryable: false,
    }),
    'host-key-changed': (node, target, knownHosts) => ({
      message: `the host key of ${node} has changed; this may be a man-in-the-middle attack`,
      hint: `If the machine was reinstalled, run: ssh-keygen -f ${knownHosts} -R '${hostKeyName(target)}'`,
      retryable: false,
    }),
    'host-key-unknown': (node, target, knownHosts) => ({
      message: `the host key of ${node} is unknown`,
      hint: `Check the key and add it to ${knownHosts}: ssh-keyscan ${target.port === undefined ? '' : `-p ${target.port} `}${target.host}. Or set cluster.ssh.hostKeys to accept-new.`,
      retryable: false,
    }),
    'timed-out': node => ({
      message: `${node} did not answer in time`,
      hint: 'Check the nodes: deputy nodes check. For a slow node, raise cluster.ssh.connectTimeout or cluster.ssh.timeout.',
      retryable: true,
    }),
    unresolved: (node, target) => ({
      message: `the host of ${node} cannot be resolved`,
      hint: `Check the host name, or set a fallback address for the node. Try: getent hosts ${target.host}`,
      retryable: true,
    }),
    busy: node => ({
      message: `${node} refuses another session`,
      hint: 'Raise MaxSessions in its sshd_config or lower max_tasks.',
      retryable: true,
    }),
    lost: node => ({
      message: `the connection to ${node} was lost`,
      hint: 'The command keeps running on the node; Deputy reconnects to it.',
      retryable: true,
    }),
  }

/** ssh does not report a missing key file. */
const isMissing = (identity: string | undefined): boolean =>
  identity !== undefined && !existsSync(identity.replace(/^~(?=\/)/, homedir()))

/** A command for the user to copy. */
const manualCommand = ({ host, user, port, jump }: SshTarget, program = 'ssh'): string =>
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
