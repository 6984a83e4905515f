import { AppError } from './errors.ts'

/**
 * Directories of this computer, as real paths, that a client may use as a workspace, subdirectories included. `any`
 * is for the user's own command line.
 */
export type AllowedDirectories = 'any' | readonly string[]

/** Resolves with the real path of a directory that the client may read; rejects with `denied` for any other. */
export type CheckDirectory = (path: string, allowed: AllowedDirectories) => Promise<string>

/** The client may not read this directory. The caller may try again with more directories (MCP roots). */
export class DirectoryRefused extends AppError {
  constructor(message: string, options: { hint: string }) {
    super('denied', message, options)
    this.name = 'DirectoryRefused'
  }
}
