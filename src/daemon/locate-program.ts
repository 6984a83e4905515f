import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** System directories that every machine mounts. */
const SYSTEM = ['/usr/', '/bin/', '/sbin/', '/lib/', '/lib64/']

/** Finds a program on the daemon's PATH, with the paths that a machine must mount to run it. */
export const locateProgram = (
  program: string,
  path = process.env.PATH ?? '',
): { path: string; shows: string[] } | undefined => {
  for (const directory of path.split(delimiter)) {
    if (!directory.startsWith('/')) continue
    const real = executable(join(directory, program))
    if (real === undefined) continue
    return { path: real, shows: SYSTEM.some(prefix => real.startsWith(prefix)) ? [] : [real] }
  }
  return undefined
}

const executable = (candidate: string): string | undefined => {
  try {
    const real = realpathSync(candidate)
    if (!statSync(real).isFile()) return undefined
    accessSync(real, constants.X_OK)
    return real
  } catch {
    return undefined
  }
}
