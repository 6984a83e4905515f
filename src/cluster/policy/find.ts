/**
 * The commands a `find` runs, with `{}` standing for where it starts. When a test narrows the search what it runs
 * meets only some files, and nothing here is about those.
 */
export const findCommands = (args: readonly string[]): string[][] => {
  const options = args.findIndex(arg => !/^-[HLPD]$|^-O\d$/.test(arg))
  const rest = options < 0 ? [] : args.slice(options)
  const end = rest.findIndex(arg => /^[-(!]/.test(arg))
  const starts = end < 0 ? rest : rest.slice(0, end)
  const expression = end < 0 ? [] : rest.slice(end)
  if (isNarrow(expression)) return []
  const roots = starts.length > 0 ? starts : ['.']
  const commands = expression.includes('-delete') ? roots.map(root => ['rm', '-r', root]) : []
  for (const [index, arg] of expression.entries()) {
    if (!/^-(?:exec|execdir|ok|okdir)$/.test(arg)) continue
    const tail = expression.slice(index + 1)
    const stop = tail.findIndex(word => word === ';' || word === '+')
    const command = stop < 0 ? tail : tail.slice(0, stop)
    for (const root of roots) commands.push(recursive(command.map(word => word.replaceAll('{}', root))))
  }
  return commands
}

/** find visits what is below by itself, so a plain `rm {}` there reaches as far as a recursive one. */
const recursive = (argv: string[]): string[] => {
  const at = argv.findIndex(word => /^(?:.*\/)?(?:rm|chmod|chown|chgrp)$/.test(word))
  return at < 0 ? argv : [...argv.slice(0, at + 1), '-R', ...argv.slice(at + 1)]
}

const NARROWING =
  /^-(?:i?name|i?path|i?wholename|i?lname|i?regex|[acm]?newer\w*|[acm]min|[acm]time|size|empty|user|group|uid|gid|nouser|nogroup|perm|inum|samefile|links|used|fstype)$/

const isNarrow = (expression: readonly string[]): boolean => {
  if (expression.some(arg => arg === '-o' || arg === '-or' || arg === ',')) return false
  return expression.some((arg, index) => {
    const negated = ['!', '-not'].includes(expression[index - 1] ?? '')
    return NARROWING.test(arg) && !negated && !/^[*.?]*$/.test(expression[index + 1] ?? 'x')
  })
}
