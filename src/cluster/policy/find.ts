import { dangerOf } from './targets.ts'

/**
 * The commands a `find` runs, with `{}` standing for where it starts and for all that is below. When a test narrows
 * the search, what it runs meets only some files, and only what it says of others is followed.
 */
export const findCommands = (args: readonly string[], cwds: readonly string[]): string[][] => {
  const options = args.findIndex(arg => !/^-[HLPD]$|^-O\d$/.test(arg))
  const rest = options < 0 ? [] : args.slice(options)
  const end = rest.findIndex(arg => /^[-(!]/.test(arg))
  const starts = end < 0 ? rest : rest.slice(0, end)
  const expression = end < 0 ? [] : rest.slice(end)
  const roots = (starts.length > 0 ? starts : ['.']).filter(
    root => root !== '' && !isNarrow(expression, root, cwds),
  )
  const commands = expression.includes('-delete') ? roots.map(root => ['rm', '-r', root]) : []
  for (const [index, arg] of expression.entries()) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(arg)) continue
    const tail = expression.slice(index + 1)
    const stop = tail.findIndex(word => word === ';' || word === '+')
    const command = stop < 0 ? tail : tail.slice(0, stop)
    if (!command.some(word => word.includes('{}'))) commands.push(command)
    else
      for (const root of roots)
        for (const found of [root, `${root}/*/*`]) {
          const argv = command.map(word => word.replaceAll('{}', found))
          commands.push(argv, recursive(argv))
        }
  }
  return commands
}

/** find visits what is below by itself, so a plain `rm {}` there reaches as far as a recursive one. */
const recursive = (argv: string[]): string[] => {
  const at = argv.findIndex(word => /^(?:.*\/)?(?:rm|unlink|shred|truncate|chmod|chown|chgrp)$/.test(word))
  if (at < 0) return argv
  const name = /(?:unlink|shred|truncate)$/.test(argv[at]!) ? 'rm' : argv[at]!
  return [...argv.slice(0, at), name, '-R', ...argv.slice(at + 1)]
}

const BY_NAME =
  /^-(?:i?name|i?path|i?wholename|i?lname|i?regex|empty|user|group|uid|gid|nouser|nogroup|inum|samefile|fstype)$/
const BY_NATURE = /^-(?:[acm]?newer\w*|[acm]min|[acm]time|size|perm|links|used)$/

/** A test of age, size or rights still meets the system's own files all over the root. */
const isNarrow = (expression: readonly string[], root: string, cwds: readonly string[]): boolean => {
  if (expression.some(arg => arg === '-o' || arg === '-or' || arg === ',')) return false
  const isRoot = dangerOf(root, cwds) === 'root'
  return expression.some((arg, index) => {
    const negated = ['!', '-not'].includes(expression[index - 1] ?? '')
    const value = expression[index + 1] ?? 'x'
    if (negated || /^[*.?]*$/.test(value)) return false
    return BY_NAME.test(arg)
      ? !/^-[ug]/.test(arg) || !/^(?:root|0)$/.test(value)
      : !isRoot && BY_NATURE.test(arg)
  })
}
