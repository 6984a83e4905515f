import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { bind, type Shown } from './system.ts'

export interface ProgramView {
  readonly shown: readonly Shown[]
  /** Directories to add to PATH. */
  readonly path: readonly string[]
}

const VISIBLE = /^\/(usr|bin|sbin|lib|lib64|nix\/store)(\/|$)/

/**
 * Shows programs that live outside the system directories. A program of an npm package needs its package, and
 * looks for it where it really is: the link stays a link and the package is shown at its own place.
 */
export const programView = (programs: readonly string[]): ProgramView => {
  const shown = new Map<string, Shown>()
  const path = new Set<string>()
  for (const program of programs) {
    if (!program.startsWith('/') || program.split('/').includes('..'))
      throw new AppError('invalid', `The program '${program}' is not an absolute path.`)
    const real = resolve(program)
    if (!VISIBLE.test(program)) path.add(dirname(program))
    if (!VISIBLE.test(real)) {
      const root = packageRoot(real) ?? real
      shown.set(root, bind(root, root))
    }
    if (program !== real && !VISIBLE.test(program))
      shown.set(program, { kind: 'link', to: real, target: program })
  }
  return { shown: [...shown.values()], path: [...path] }
}

const resolve = (program: string): string => {
  try {
    return realpathSync(program)
  } catch (cause) {
    throw new AppError('invalid', `The program '${program}' does not exist on this computer.`, { cause })
  }
}

/** The package a script belongs to. A directory given as a program stands for itself. */
const packageRoot = (real: string): string | undefined => {
  if (lstatSync(real).isDirectory()) return undefined
  for (let dir = dirname(real); dir !== '/'; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return dir
    if (dir.endsWith('/node_modules')) return undefined
  }
  return undefined
}
