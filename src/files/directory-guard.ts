import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import { type CheckDirectory, DirectoryRefused } from '../jobs/allowed-directories.ts'
import { AppError } from '../jobs/errors.ts'
import { refuseOwnDirectory } from './refuse-own-directory.ts'

export interface DirectoryGuardOptions {
  /** State, configuration and socket directories of Deputy; no job may read them. */
  readonly own: readonly string[]
  /** `workspaces.allow` of the configuration. */
  readonly allow: readonly string[]
  /**
   * Home directories of the user. They are not allowed only because a client was started there: they hold too much.
   */
  readonly homes: readonly string[]
  readonly configFile: string
}

/** Decides which directories of this computer a job may read. */
export const createDirectoryGuard =
  ({ own, allow, homes, configFile }: DirectoryGuardOptions): CheckDirectory =>
  async (path, allowed) => {
    const real = await realpath(path).catch(() => undefined)
    if (allowed !== 'any') {
      const listed = await Promise.all(allow.map(realOrSame))
      const userHomes = await Promise.all(homes.map(realOrSame))
      const given = allowed.filter(directory => !userHomes.some(home => isWithin(home, directory)))
      // A path that does not exist is compared as written, so that a client cannot find out what exists elsewhere.
      const target = real ?? resolve(path)
      if (![...listed, ...given].some(directory => isWithin(target, directory)))
        throw notAllowed(path, target, allow, configFile)
    }
    if (real === undefined || !(await stat(real)).isDirectory())
      throw new AppError('invalid', `The workspace '${path}' is not a directory.`, {
        hint: 'Use an existing directory on the computer where the daemon runs.',
      })
    await refuseOwnDirectory(real, own)
    return real
  }

const realOrSame = (path: string): Promise<string> => realpath(path).catch(() => resolve(path))

/** Whether `path` is `directory` or inside it. Both are real paths. */
const isWithin = (path: string, directory: string): boolean => {
  const inside = relative(directory, path)
  return inside === '' || (!isAbsolute(inside) && inside.split('/')[0] !== '..')
}

const notAllowed = (
  path: string,
  target: string,
  allow: readonly string[],
  configFile: string,
): DirectoryRefused =>
  new DirectoryRefused(`This client may not read the directory '${path}'.`, {
    // JSON is valid YAML, so any path is quoted correctly.
    hint: `Only the user can allow it. Add this line to ${configFile}, then run deputy daemon restart: workspaces: { allow: ${JSON.stringify([...allow, target])} }`,
  })
