export type ErrorKind =
  | 'parameters'
  | 'unauthorized'
  | 'permission'
  | 'root_only'
  | 'ticket_only'
  | 'unknown_call'
  | 'missing'
  | 'elsewhere'
  | 'exists'
  | 'changed'
  | 'running'
  | 'stopped'
  | 'locked'
  | 'stale_lock'
  | 'agent_down'
  | 'agent_off'
  | 'no_space'
  | 'no_quorum'
  | 'node_down'
  | 'unreachable'
  | 'tls'
  | 'uncertain'
  | 'task_failed'
  | 'server'

/**
 * Proxmox VE sends neither 404 nor 409, so the kind of error is derived from the message. HTTP responses and the exit
 * status of tasks use the same messages.
 */
export const classifyError = (
  status: number,
  message: string,
  errors?: Readonly<Record<string, string>>,
): ErrorKind => {
  if (status === 401) return 'unauthorized'
  if (status === 403) return FORBIDDEN.find(([pattern]) => pattern.test(message))?.[1] ?? 'permission'
  if (status === 501) return 'unknown_call'
  if (status === 502 || status === 503 || status === 504) return 'unreachable'
  if (status === 400) return /no such task/.test(errors?.upid ?? message) ? 'missing' : 'parameters'
  return MESSAGES.find(([pattern]) => pattern.test(message))?.[1] ?? 'server'
}

/** Lock errors disappear when the other operation ends. */
export const isLockKind = (kind: ErrorKind | undefined): boolean => kind === 'locked' || kind === 'stale_lock'

const FORBIDDEN: readonly (readonly [RegExp, ErrorKind])[] = [
  [/need proper ticket/i, 'ticket_only'],
  [/user != root@pam|only root |only allowed for root/i, 'root_only'],
]

const MESSAGES: readonly (readonly [RegExp, ErrorKind])[] = [
  ...FORBIDDEN,
  // A program is missing on the node, not a guest.
  [/unable to find command|command not found/i, 'server'],
  [/can't lock file .* got timeout/i, 'locked'],
  [/cfs-lock .*(got lock (request )?timeout|error: got)/i, 'locked'],
  [/is locked \(\S+\)/i, 'stale_lock'],
  [/config file already exists|already exists|file exists/i, 'exists'],
  [/checksum mismatch|file change by other user/i, 'changed'],
  [/QEMU guest agent is not running|guest agent .*(timed? ?out|not running)/i, 'agent_down'],
  [/No QEMU guest agent configured/i, 'agent_off'],
  [/permission check failed/i, 'permission'],
  [/no quorum/i, 'no_quorum'],
  [/storage '.*' is not available on node/i, 'elsewhere'],
  [/no space left|not enough (free )?space|out of space|insufficient free (extents|space)/i, 'no_space'],
  [/is running - destroy failed|already running/i, 'running'],
  [/not running/i, 'stopped'],
  [
    /hostname lookup '.*' failed|does not exist|no such (file|volume|vm|pool|storage)|unable to find/i,
    'missing',
  ],
]
