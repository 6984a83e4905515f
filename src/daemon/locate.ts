import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** System directories every machine shows anyway. */
const SYSTEM = ['/usr/', '/bin/', '/sbin/', '/lib/', '/lib64/']

/** A program on the daemon's PATH and what a machine must show for it to run there. */
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
