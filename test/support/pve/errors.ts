/** An answer that is not a success, in the shape Proxmox VE gives it. */
export class PveError extends Error {
  readonly status: number
  readonly errors: Readonly<Record<string, string>> | undefined

  constructor(status: number, message: string, errors?: Readonly<Record<string, string>>) {
    super(message)
    this.status = status
    this.errors = errors
  }
}

/** Perl's `die`: everything that has no better status is a 500. */
export const die = (message: string): never => {
  throw new PveError(500, message)
}

export const badParams = (errors: Readonly<Record<string, string>>): PveError =>
  new PveError(400, 'Parameter verification failed.', errors)

export const forbidden = (what?: string): PveError =>
  new PveError(403, what === undefined ? 'Permission check failed' : `Permission check failed (${what})`)
