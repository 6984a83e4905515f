import { AppError, type ErrorCode } from '../jobs/errors.ts'
import { classifyError, type ErrorKind } from './classify-error.ts'
import { parsePermissionFailure } from './permission-failure.ts'

/** Machine-readable `details` of every error of this client. */
export interface ProxmoxDetails {
  readonly source: 'proxmox'
  readonly kind: ErrorKind
  readonly method?: string
  readonly path?: string
  readonly status?: number
  /** One message per parameter, from Proxmox VE. */
  readonly errors?: Readonly<Record<string, string>>
  readonly aclPath?: string
  readonly privileges?: readonly string[]
  readonly upid?: string
  readonly exitStatus?: string
  readonly log?: readonly string[]
  readonly fingerprint?: string
}

/**
 * The response to a write was lost. The write may be done, in progress or not received: check the tasks and the
 * configuration before sending it again.
 */
export class UncertainError extends AppError {
  constructor(call: Call, why: string, options: { status?: number; cause?: unknown } = {}) {
    super('unavailable', `Unknown whether Proxmox VE carried out ${call.method} ${call.path}: ${why}.`, {
      hint: 'Check the tasks and the configuration of the guest before trying again.',
      retryable: false,
      details: details('uncertain', call, options.status === undefined ? {} : { status: options.status }),
      cause: options.cause,
    })
    this.name = 'UncertainError'
  }
}

export interface Call {
  readonly method: string
  readonly path: string
}

export interface ApiResponse {
  readonly status: number
  readonly reason: string
  readonly body: Uint8Array
}

/** Converts an unsuccessful response to an AppError with the message of Proxmox VE. */
export const errorFromResponse = (call: Call, response: ApiResponse): AppError => {
  const { message, errors } = readBody(response)
  const text = message || response.reason || `status ${response.status}`
  if (response.status >= 595 && response.status <= 599) return proxyFailure(call, response.status, text)
  // A gateway lost the response, so the write may have happened.
  if (call.method !== 'GET' && (response.status === 502 || response.status === 504))
    return new UncertainError(call, `${response.status} ${text}`, { status: response.status })
  const kind = classifyError(response.status, text, errors)
  const extra = kind === 'permission' ? parsePermissionFailure(text) : undefined
  const listed = errors
    ? ` (${Object.entries(errors)
        .map(([name, text]) => `${name}: ${text.trim()}`)
        .join('; ')})`
    : ''
  return new AppError(CODES[kind].code, `Proxmox VE refused ${call.method} ${call.path}: ${text}${listed}`, {
    hint: hintFor(kind, call),
    retryable: CODES[kind].retryable ?? false,
    details: details(kind, call, { status: response.status, ...(errors ? { errors } : {}), ...extra }),
  })
}

/** Converts the exit status of a failed task to an error. It is classified like the message of an HTTP response. */
export const errorFromTask = (
  upid: string,
  type: string,
  exitStatus: string,
  log: readonly string[],
): AppError => {
  const kind = classifyError(500, exitStatus)
  const found = kind === 'server' ? 'task_failed' : kind
  const extra = kind === 'permission' ? parsePermissionFailure(exitStatus) : undefined
  return new AppError(CODES[found].code, `The Proxmox VE task ${type} failed: ${exitStatus}`, {
    hint: CODES[found].hint,
    retryable: CODES[found].retryable ?? false,
    details: { source: 'proxmox', kind: found, upid, exitStatus, log, ...extra } satisfies ProxmoxDetails,
  })
}

export const wrongPassword = (user: string, { reason, status }: ApiResponse): AppError =>
  new AppError('unauthorized', `Proxmox VE refused the login of ${user}: ${reason || status}`, {
    hint: 'Check PROXMOX_USER, with its realm (name@pam), and PROXMOX_PASSWORD; better, use an API token.',
    details: details('unauthorized', { method: 'POST', path: '/access/ticket' }, { status }),
  })

export const unreachable = (call: Call, why: string, cause: unknown): AppError =>
  new AppError('unavailable', `Proxmox VE did not answer ${call.method} ${call.path}: ${why}`, {
    hint: 'Check PROXMOX_HOST, PROXMOX_PORT and the network: deputy doctor',
    details: details('unreachable', call),
    cause,
  })

/** The details of an error of this client; undefined for any other error. */
export const proxmoxDetails = (error: unknown): ProxmoxDetails | undefined => {
  if (!(error instanceof AppError)) return undefined
  const found = error.details as ProxmoxDetails | undefined
  return found?.source === 'proxmox' ? found : undefined
}

const details = (kind: ErrorKind, call: Call, more: Partial<ProxmoxDetails> = {}): ProxmoxDetails => ({
  source: 'proxmox',
  kind,
  method: call.method,
  path: call.path,
  ...more,
})

/** pveproxy got no response from pvedaemon or another node. Only 595 guarantees that nothing happened. */
const proxyFailure = (call: Call, status: number, message: string): AppError => {
  if (call.method !== 'GET' && status !== 595)
    return new UncertainError(call, `${status} ${message}`, { status })
  return new AppError(
    'unavailable',
    `Proxmox VE could not forward ${call.method} ${call.path}: ${status} ${message}`,
    {
      hint: 'A node is down or its pvedaemon hangs. On the node: systemctl status pvedaemon pveproxy',
      details: details('node_down', call, { status }),
    },
  )
}

const hintFor = (kind: ErrorKind, { method, path }: Call): string =>
  kind === 'root_only' || kind === 'ticket_only'
    ? `${CODES[kind].hint} pvesh ${PVESH[method] ?? 'get'} ${path}`
    : CODES[kind].hint

const PVESH: Readonly<Record<string, string>> = { POST: 'create', PUT: 'set', DELETE: 'delete' }

/** Before PVE 8.4 only the reason phrase has the message, and 501 responses are plain text. */
const readBody = (response: ApiResponse): { message: string; errors?: Record<string, string> } => {
  const text = new TextDecoder().decode(response.body).trim()
  if (!text.startsWith('{')) return { message: text.length <= 2000 && !text.startsWith('<') ? text : '' }
  try {
    const body = JSON.parse(text) as { message?: unknown; errors?: unknown }
    const message = typeof body.message === 'string' ? body.message.trim() : ''
    if (typeof body.errors !== 'object' || body.errors === null) return { message }
    const errors = Object.entries(body.errors).map(([name, why]) => [name, String(why)] as const)
    return { message, errors: Object.fromEntries(errors) }
  } catch {
    return { message: '' }
  }
}

interface Meaning {
  readonly code: ErrorCode
  readonly hint: string
  readonly retryable?: true
}

const CODES: Record<ErrorKind, Meaning> = {
  parameters: { code: 'invalid', hint: 'Correct the parameters named above.' },
  unauthorized: {
    code: 'unauthorized',
    hint: 'The token is unknown, expired or revoked: check PROXMOX_USER, PROXMOX_TOKEN_NAME and PROXMOX_TOKEN_VALUE.',
  },
  permission: {
    code: 'denied',
    hint: 'The token lacks a privilege; with privilege separation user and token both need it: deputy doctor',
  },
  root_only: {
    code: 'denied',
    hint: 'Only root@pam with a password may do this, no token. On a node, as root:',
  },
  ticket_only: {
    code: 'denied',
    hint: 'API tokens may not do this: set PROXMOX_USER and PROXMOX_PASSWORD instead of the token, or on a node, as root:',
  },
  unknown_call: { code: 'unsupported', hint: 'This Proxmox VE version has no such path or method.' },
  missing: { code: 'not_found', hint: 'It was deleted or never existed: list what exists first.' },
  elsewhere: {
    code: 'not_found',
    hint: 'The storage is restricted to other nodes: Datacenter, Storage, Nodes.',
  },
  exists: { code: 'conflict', hint: 'Choose another id or name.' },
  changed: {
    code: 'conflict',
    hint: 'It was changed in the meantime: read it again and retry.',
    retryable: true,
  },
  running: { code: 'conflict', hint: 'Stop the guest first.' },
  stopped: { code: 'conflict', hint: 'Start the guest first.' },
  locked: {
    code: 'unavailable',
    hint: 'Another operation holds the lock: try again later.',
    retryable: true,
  },
  stale_lock: {
    code: 'conflict',
    hint: 'If no operation is running on this guest, remove the lock as root on the node: qm unlock <vmid>',
    retryable: true,
  },
  agent_down: {
    code: 'unavailable',
    hint: 'The guest agent has not started yet or is missing: install qemu-guest-agent in the template.',
    retryable: true,
  },
  agent_off: { code: 'unsupported', hint: 'Enable it: qm set <vmid> --agent enabled=1' },
  no_space: {
    code: 'unavailable',
    hint: 'The storage is full: free space or use another storage.',
    retryable: true,
  },
  no_quorum: {
    code: 'unavailable',
    hint: 'The cluster has no quorum. On a node: pvecm status',
    retryable: true,
  },
  node_down: {
    code: 'unavailable',
    hint: 'The node does not answer. On another node: pvecm nodes',
    retryable: true,
  },
  unreachable: {
    code: 'unavailable',
    hint: 'Check PROXMOX_HOST and the network: deputy doctor',
    retryable: true,
  },
  tls: { code: 'unavailable', hint: 'Check the certificate: deputy doctor' },
  uncertain: { code: 'unavailable', hint: 'Check what happened before trying again.' },
  task_failed: { code: 'internal', hint: 'The last lines of its log are in the details.' },
  server: {
    code: 'internal',
    hint: 'The message is from Proxmox VE; the journal of the node may have more.',
  },
}
