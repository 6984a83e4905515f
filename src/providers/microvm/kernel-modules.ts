import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { unpackModule } from './unpack-kernel.ts'

export interface KernelModule {
  readonly name: string
  readonly content: Buffer
}

/** The modules with these names and all that they need, in the order in which they must be loaded. */
export const resolveModules = (directory: string, names: readonly string[]): KernelModule[] => {
  const files = new Map(modulesBelow(join(directory, 'kernel')).map(path => [moduleName(path), path]))
  const builtIn = new Set(linesOf(join(directory, 'modules.builtin')).map(moduleName))
  const resolved = new Map<string, KernelModule>()
  const resolve = (name: string): void => {
    if (builtIn.has(name) || resolved.has(name)) return
    const path = files.get(name)
    if (path === undefined)
      throw new AppError('unsupported', `The kernel in ${directory} has no module '${name}'.`, {
        hint: 'Use the kernel package linux-image-cloud-amd64, linux-image-amd64 or linux-image-generic.',
      })
    const content = unpackModule(readFileSync(path))
    for (const needed of dependenciesOf(content)) resolve(needed)
    resolved.set(name, { name, content })
  }
  for (const name of names) resolve(name)
  return [...resolved.values()]
}

/** File names have - or _, the kernel knows only _. */
const moduleName = (path: string): string =>
  basename(path)
    .replace(/\.ko(?:\..*)?$/, '')
    .replaceAll('-', '_')

/** What the section `.modinfo` names: `depends=a,b`, between NUL bytes. */
export const dependenciesOf = (module: Buffer): string[] => {
  const key = '\0depends='
  const at = module.indexOf(key, 0, 'latin1')
  if (at < 0) return []
  const start = at + key.length
  const names = module.toString('latin1', start, module.indexOf(0, start))
  return names.split(',').filter(Boolean).map(moduleName)
}

const modulesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter(path => /\.ko(?:\.(?:xz|zst|gz))?$/.test(path))
    .map(path => join(directory, path))

const linesOf = (path: string): string[] => {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
