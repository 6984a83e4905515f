import { valueAt } from './records.ts'
/**
 * The errors of the whole product. A code is stable and public, the message is one sentence that names the offending
 * value, and the hint is the next step, as a command where there is one.
 */
export type ErrorCode = keyof typeof ERROR_TABLE

interface Mapping {
  readonly http: number
  readonly exit: number
  readonly retryable: boolean
}

/** The only place where a code becomes an HTTP status or an exit status. */
export const ERROR_TABLE = {
  invalid: { http: 400, exit: 2, retryable: false },
  unauthorized: { http: 401, exit: 2, retryable: false },
  denied: { http: 403, exit: 2, retryable: false },
  not_found: { http: 404, exit: 2, retryable: false },
  method_not_allowed: { http: 405, exit: 2, retryable: false },
  conflict: { http: 409, exit: 2, retryable: false },
  too_large: { http: 413, exit: 2, retryable: false },
  rate_limited: { http: 429, exit: 1, retryable: true },
  queue_full: { http: 429, exit: 1, retryable: true },
  unsupported: { http: 422, exit: 2, retryable: false },
  internal: { http: 500, exit: 1, retryable: false },
  unavailable: { http: 503, exit: 1, retryable: true },
  timeout: { http: 504, exit: 1, retryable: true },
} as const satisfies Record<string, Mapping>

export interface ErrorOptions {
  hint?: string | undefined
  details?: unknown
  cause?: unknown
  retryable?: boolean
}

export interface ErrorBody {
  code: ErrorCode
  message: string
  hint?: string
  retryable: boolean
  details?: unknown
}

/** Joins message and hint, for places with room for one line. */
export const messageWithHint = ({
  message,
  hint,
}: {
  message: string
  hint?: string | undefined
}): string => {
  if (hint === undefined) return message
  return `${message}${/[.!?]$/.test(message) ? '' : '.'} ${hint}`
}

export class AppError extends Error {
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly retryable: boolean
  readonly details: unknown

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.hint = options.hint
    this.retryable = options.retryable ?? ERROR_TABLE[code].retryable
    this.details = options.details
  }

  get httpStatus(): number {
    return ERROR_TABLE[this.code].http
  }

  get exitStatus(): number {
    return ERROR_TABLE[this.code].exit
  }

  toBody(): ErrorBody {
    const body: ErrorBody = { code: this.code, message: this.message, retryable: this.retryable }
    if (this.hint !== undefined) body.hint = this.hint
    if (this.details !== undefined) body.details = this.details
    return body
  }

  /** Rebuilds an error received over the control socket. An unknown code of a newer daemon becomes `internal`. */
  static fromBody(body: ErrorBody): AppError {
    const code = body.code in ERROR_TABLE ? body.code : 'internal'
    const { retryable, details, hint } = body
    return new AppError(code, body.message, { retryable, details, hint })
  }
}

/** Returns a copy of an error with another message, hint or `retryable`. */
export const amendError = (
  error: AppError,
  change: Pick<ErrorOptions, 'hint' | 'retryable'> & { message?: string },
): AppError => {
  const { code, message, hint, retryable, details } = error
  return new AppError(code, change.message ?? message, { hint, retryable, details, cause: error, ...change })
}

/** Whether the only problem is that all slots are in use: the job waits for one and does not fail. */
export const isAtCapacity = (error: unknown): boolean =>
  error instanceof AppError && valueAt(error.details, ['full']) === true

/** Converts anything thrown to an AppError. A defect keeps its cause, but callers never see a stack. */
export const toAppError = (thrown: unknown): AppError => {
  if (thrown instanceof AppError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new AppError('internal', message || 'an unexpected error without a message', {
    cause: thrown,
    hint: 'This is a defect in Deputy. The details are in the daemon log: deputy daemon status shows its path.',
  })
}
