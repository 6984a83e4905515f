import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError } from '../jobs/errors.ts'

/**
 * Refuses a directory that contains Deputy's own state, configuration or socket, or is inside one of them: they hold
 * the tokens that give full rights. Compares inodes, so symbolic links and bind mounts do not help.
 */
export const refuseOwnDirectory = async (directory: string, own: readonly string[]): Promise<void> => {
  const chain = await identities(directory)
  for (const ownDirectory of own) {
    const real = await realpath(ownDirectory).catch(() => undefined)
    const isBelow = real !== undefined && chain.includes(await identity(real))
    const isAbove = (await identities(real ?? (await nearestExisting(ownDirectory)))).includes(chain[0]!)
    if (isBelow || isAbove)
      throw new AppError(
        'denied',
        `The directory '${directory}' holds Deputy's own files (${ownDirectory}).`,
        {
          hint: 'Use the directory of one project instead.',
        },
      )
  }
}

const identity = async (path: string): Promise<string> => {
  const { dev, ino } = await stat(path, { bigint: true })
  return `${dev}:${ino}`
}

/** Identities of a real path and of each directory above it. */
const identities = async (path: string): Promise<string[]> => {
  const parent = dirname(path)
  return [await identity(path), ...(parent === path ? [] : await identities(parent))]
}

/** For a directory that does not exist yet: the nearest existing directory above it. */
const nearestExisting = async (path: string): Promise<string> =>
  (await realpath(path).catch(() => undefined)) ?? nearestExisting(dirname(path))
