import type { Builtin } from './commands.ts'
import { outputOf } from './programs.ts'
import { NO_ARGUMENTS } from './scope.ts'
import { resolvePath } from './targets.ts'
import { HOME, UNKNOWN } from './text.ts'

export const changeDirectory: Builtin = (_, args, scope) => {
  const target = args.find(arg => !/^-[LPe@n]+$/.test(arg) && arg !== '--') ?? HOME
  const next = target === '-' ? [UNKNOWN] : scope.cwds.map(cwd => resolvePath(target, cwd))
  // `cd x || exit` is a branch only on paper: after it the directory is x.
  scope.cwds = [...new Set(scope.conditional ? [...scope.cwds, ...next] : next)].slice(-4)
  return ''
}

export const declare: Builtin = (_, args, scope) => {
  const refers = args.some(arg => /^-\w*n/.test(arg))
  for (const arg of args) {
    const match = /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(arg)
    if (match && refers) scope.refer(match[1]!, match[2]!)
    else if (match && !scope.lookup(match[1]!).some(value => value !== ''))
      scope.assign(match[1]!, [match[2]!])
  }
  return ''
}

/** Each name takes a field and the last one the rest, of every line there may be. */
export const read: Builtin = (_, args, scope, stdin) => {
  const lines = stdin
    .split('\n')
    .filter(line => line !== '')
    .slice(0, 8)
  const names = args.filter(
    (arg, index) => /^[A-Za-z_]\w*$/.test(arg) && !/^-\w*[dinNptu]$/.test(args[index - 1] ?? ''),
  )
  const fields = (line: string): string[] => line.split(scope.separators()).filter(field => field !== '')
  if (args.some(arg => /^-\w*a$/.test(arg))) {
    scope.assignArray(names[0] ?? 'REPLY', lines.flatMap(fields).slice(0, 256))
    return ''
  }
  const last = Math.max(0, names.length - 1)
  for (const [index, name] of (names.length > 0 ? names : ['REPLY']).entries()) {
    const values = lines.map(line => {
      if (last === 0 || line.includes(UNKNOWN)) return line
      const all = fields(line)
      return index < last ? (all[index] ?? '') : all.slice(last).join(' ')
    })
    scope.assign(name, values.length > 0 ? values : [UNKNOWN])
  }
  return ''
}

export const readArray: Builtin = (_, args, scope, stdin) => {
  const name = args.findLast(arg => /^[A-Za-z_]\w*$/.test(arg)) ?? 'MAPFILE'
  scope.assignArray(
    name,
    stdin
      .split('\n')
      .filter(line => line !== '')
      .slice(0, 64),
  )
  return ''
}

export const setArguments: Builtin = (_, args, scope) => {
  if (args.some((arg, index) => /^-[a-z]*u/.test(arg) || (arg === 'nounset' && args[index - 1] === '-o')))
    scope.nounset = true
  const marker = args.indexOf('--')
  if (marker >= 0) scope.args = args.slice(marker + 1)
  return ''
}

/** `printf -v name format…` prints into a variable. */
export const print: Builtin = (_, args, scope, stdin) => {
  const into = args[0] === '-v' ? args[1] : args[0]?.startsWith('-v') ? args[0].slice(2) : undefined
  if (into === undefined) return outputOf(['printf', ...args], stdin)
  scope.assign(into, [outputOf(['printf', ...args.slice(args[0] === '-v' ? 2 : 1)], stdin)])
  return ''
}

/** Each call names another file, which is not known but the same wherever the script uses it. */
export const temporary: Builtin = (interpreter, args) => {
  interpreter.temporaries++
  return `/tmp/tmp.${interpreter.temporaries}${args.some(arg => /^-\w*d/.test(arg)) ? 'd' : ''}\n`
}

export const trap: Builtin = (interpreter, args) => {
  const script = args.find(arg => arg !== '--')
  if (script && script !== '-' && args.length > 1) interpreter.traps.push(script)
  return ''
}

export const alias: Builtin = (_, args, scope) => {
  for (const arg of args) {
    const equals = arg.indexOf('=')
    if (equals > 0) scope.aliases.set(arg.slice(0, equals), arg.slice(equals + 1))
  }
  return ''
}

export const shift: Builtin = (_, args, scope) => {
  if (scope.args !== NO_ARGUMENTS) scope.args = scope.args.slice(Number(args[0] ?? 1) || 1)
  return ''
}

export const unset: Builtin = (_, args, scope) => {
  for (const name of args) scope.unset(name)
  return ''
}
