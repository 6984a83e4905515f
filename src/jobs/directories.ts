import { AppError } from './errors.ts'

/**
 * Directories of this computer that a client may name as a workspace, each with everything below it, as real paths.
 * `any` is for the user's own command line.
 */
export type Directories = 'any' | readonly string[]

/** Resolves with the real path of a directory that the client may read; throws `denied` for any other. */
export type CheckDirectory = (path: string, allowed: Directories) => Promise<string>

/** The client may not read this directory; one that has more directories to offer may get past it. */
export class DirectoryRefused extends AppError {
  constructor(message: string, options: { hint: string }) {
    super('denied', message, options)
    this.name = 'DirectoryRefused'
  }
}
