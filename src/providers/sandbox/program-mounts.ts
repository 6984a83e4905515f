import { lstatSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { readRegularFileSync } from '../../files/regular-file.ts'
import { AppError } from '../../jobs/errors.ts'
import { bind, type MountEntry } from './system-mounts.ts'

export interface ProgramMounts {
  readonly mounts: readonly MountEntry[]
  /** Directories to add to PATH. */
  readonly path: readonly string[]
}

const SYSTEM_DIR = /^\/(usr|bin|sbin|lib|lib64|nix\/store)(\/|$)/

/**
 * Mounts programs from outside the system directories. A program of an npm package needs its package, and
 * finds it by its real path: the link stays a link and the package is mounted at its real path.
 */
export const programMounts = (programs: readonly string[]): ProgramMounts => {
  const mounts = new Map<string, MountEntry>()
  const path = new Set<string>()
  for (const program of programs) {
    if (!program.startsWith('/') || program.split('/').includes('..'))
      throw new AppError('invalid', `The program '${program}' is not an absolute path.`)
    const real = resolve(program)
    if (!SYSTEM_DIR.test(program)) path.add(dirname(program))
    if (!SYSTEM_DIR.test(real)) {
      const root = packageRoot(real) ?? real
      mounts.set(root, bind(root, root))
    }
    if (program !== real && !SYSTEM_DIR.test(program))
      mounts.set(program, { kind: 'link', to: real, target: program })
  }
  return { mounts: [...mounts.values()], path: [...path] }
}

const resolve = (program: string): string => {
  try {
    return realpathSync(program)
  } catch (cause) {
    throw new AppError('invalid', `The program '${program}' does not exist on this computer.`, { cause })
  }
}

const IN_NODE_MODULES = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/.@][^/]*)\//

/**
 * Finds the package of a program: the one below node_modules, or one whose package.json names the program. Any
 * other package.json, such as one that `npm install` leaves in a home, is ignored. A directory has no package.
 */
const packageRoot = (real: string): string | undefined => {
  if (lstatSync(real).isDirectory()) return undefined
  const installed = IN_NODE_MODULES.exec(real)?.[1]
  if (installed !== undefined) return installed
  for (let dir = dirname(real); !isAboveHome(dir); dir = dirname(dir)) if (namesProgram(dir, real)) return dir
  return undefined
}

/** The home and its parents are never mounted for a program. */
const isAboveHome = (dir: string): boolean => dir === '/' || `${homedir()}/`.startsWith(`${dir}/`)

const namesProgram = (dir: string, program: string): boolean => {
  try {
    const text = readRegularFileSync(join(dir, 'package.json'), { maxBytes: 1024 * 1024 }).toString('utf8')
    const { bin = {} } = JSON.parse(text) as { bin?: unknown }
    const files = typeof bin === 'string' ? [bin] : Object.values(bin as object)
    return files.some(file => typeof file === 'string' && join(dir, file) === program)
  } catch {
    return false // No package.json, or not JSON.
  }
}
