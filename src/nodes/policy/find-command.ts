import { protectedBy } from './protected-paths.ts'
import { baseName } from './wrappers.ts'

export interface Find {
  /** The directories it starts in, without those where its tests exclude most files. */
  roots: string[]
  /** The commands it runs, with a root in place of `{}`. */
  commands: string[][]
}

export const readFind = (args: readonly string[], cwd: string): Find => {
  const rest = args.filter(arg => !/^-[HLP]$|^-O\d$/.test(arg))
  const end = rest.findIndex(arg => /^[-(!]/.test(arg))
  const expression = end < 0 ? [] : rest.slice(end)
  const named = end < 0 ? rest : rest.slice(0, end)
  const roots = (named.length > 0 ? named : ['.']).filter(
    root => root !== '' && !isNarrowed(expression, root, cwd),
  )
  const commands = args.includes('-delete') ? roots.map(root => ['rm', '-r', root]) : []
  for (const [index, arg] of args.entries()) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(arg)) continue
    const tail = args.slice(index + 1)
    const stop = tail.findIndex(word => word === ';' || word === '+')
    const command = stop < 0 ? tail : tail.slice(0, stop)
    if (!command.some(word => word.includes('{}'))) commands.push(command)
    else
      for (const root of roots) commands.push(asRecursive(command.map(word => word.replaceAll('{}', root))))
  }
  return { roots, commands }
}

/** find visits every file below a root, so `rm {}` deletes as much as `rm -R` on the root. */
const asRecursive = ([program = '', ...args]: readonly string[]): string[] =>
  /^(?:rm|chmod|chown|chgrp)$/.test(baseName(program)) ? [program, '-R', ...args] : [program, ...args]

const BY_NAME =
  /^-(?:i?name|i?path|i?wholename|i?lname|i?regex|empty|nouser|nogroup|user|group|inum|samefile)$/
const BY_AGE_OR_SIZE = /^-(?:[acm]?newer\w*|[acm]min|[acm]time|size|links|used)$/

/** Below `/`, a test for age or size still matches files of the system; only a name narrows the search there. */
const isNarrowed = (expression: readonly string[], root: string, cwd: string): boolean =>
  !expression.includes('-o') &&
  expression.some((arg, index) => {
    const negated = ['!', '-not'].includes(expression[index - 1] ?? '')
    if (negated || /^[*.?]+$/.test(expression[index + 1] ?? '')) return false
    return BY_NAME.test(arg) || (BY_AGE_OR_SIZE.test(arg) && protectedBy(root, cwd) !== 'root')
  })
