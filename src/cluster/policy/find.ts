import { protectedBy } from './paths.ts'
import { baseName } from './wrappers.ts'

/** Where a `find` starts, left out when its tests keep it from taking everything there. */
export const findRoots = (args: readonly string[], cwd: string): string[] => {
  const rest = args.filter(arg => !/^-[HLP]$|^-O\d$/.test(arg))
  const end = rest.findIndex(arg => /^[-(!]/.test(arg))
  const roots = end < 0 ? rest : rest.slice(0, end)
  const expression = end < 0 ? [] : rest.slice(end)
  return (roots.length > 0 ? roots : ['.']).filter(root => root !== '' && !isNarrowed(expression, root, cwd))
}

/** The commands that a `find` runs, with `{}` standing for where it starts. */
export const findCommands = (args: readonly string[], cwd: string): string[][] => {
  const roots = findRoots(args, cwd)
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
  return commands
}

/** find visits what is below by itself, so a plain `rm {}` reaches as far as a recursive one. */
const asRecursive = ([program = '', ...args]: readonly string[]): string[] =>
  /^(?:rm|chmod|chown|chgrp)$/.test(baseName(program)) ? [program, '-R', ...args] : [program, ...args]

const BY_NAME =
  /^-(?:i?name|i?path|i?wholename|i?lname|i?regex|empty|nouser|nogroup|user|group|inum|samefile)$/
const BY_AGE_OR_SIZE = /^-(?:[acm]?newer\w*|[acm]min|[acm]time|size|links|used)$/

/** Old or large files are found all over the root, too; there only a name narrows the search. */
const isNarrowed = (expression: readonly string[], root: string, cwd: string): boolean =>
  !expression.includes('-o') &&
  expression.some((arg, index) => {
    const negated = ['!', '-not'].includes(expression[index - 1] ?? '')
    if (negated || /^[*.?]+$/.test(expression[index + 1] ?? '')) return false
    return BY_NAME.test(arg) || (BY_AGE_OR_SIZE.test(arg) && protectedBy(root, cwd) !== 'root')
  })
