import type { Builtin } from './commands.ts'
import { outputOf } from './programs.ts'
import { baseName, DOWNLOAD, UNKNOWN } from './text.ts'

const isOption = (arg: string): boolean => arg.startsWith('-') && arg !== '-'

export const tee: Builtin = (interpreter, args, scope, stdin) => {
  const append = args.some(arg => /^-\w*a|^--append$/.test(arg))
  for (const path of args.filter(arg => !isOption(arg))) interpreter.deliver(path, stdin, scope, append)
  return stdin
}

/** Prints what it reads: known files, or its input. */
export const cat: Builtin = (interpreter, args, scope, stdin) => {
  const paths = args.filter(arg => !isOption(arg))
  if (paths.length === 0) return stdin
  return paths
    .map(path => (path === '-' ? stdin : (interpreter.files.read(path, scope.cwds)?.join('\n') ?? UNKNOWN)))
    .join('')
}

/** A copy of what the script wrote is known as well. */
export const copy: Builtin = (interpreter, args, scope, stdin) => {
  const paths = args.filter(arg => !isOption(arg))
  const target = paths.at(-1)
  if (target === undefined) return ''
  for (const path of paths.slice(0, -1)) {
    const texts = path === '/dev/stdin' ? [stdin] : interpreter.files.read(path, scope.cwds)
    for (const text of texts ?? []) {
      interpreter.deliver(target, text, scope)
      interpreter.deliver(`${target}/${baseName(path)}`, text, scope)
    }
  }
  return ''
}

/** dd if=… of=… */
export const blocks: Builtin = (interpreter, args, scope, stdin) => {
  const value = (key: string): string | undefined =>
    args.find(arg => arg.startsWith(`${key}=`))?.slice(key.length + 1)
  const from = value('if')
  const to = value('of')
  const text = from === undefined ? stdin : (interpreter.files.read(from, scope.cwds)?.join('\n') ?? UNKNOWN)
  if (to === undefined) return text
  interpreter.deliver(to, text, scope)
  return ''
}

/** What comes from the network goes to a file or to standard output. */
export const download: Builtin = (interpreter, args, scope) => {
  const targets = [...downloadTargets('curl', args)]
  return keep(targets, path => interpreter.deliver(path, DOWNLOAD, scope))
}

export const wget: Builtin = (interpreter, args, scope) =>
  keep([...downloadTargets('wget', args)], path => interpreter.deliver(path, DOWNLOAD, scope))

const keep = (targets: readonly string[], write: (path: string) => void): string => {
  const files = targets.filter(path => path !== '-' && path !== '/dev/stdout')
  for (const path of files) write(path)
  return files.length > 0 && files.length === targets.length ? '' : DOWNLOAD
}

const DIALECTS = {
  curl: { to: 'o', long: '--output', named: /^-[A-Za-z]*O|^--remote-name/, folder: '--output-dir' },
  wget: { to: 'O', long: '--output-document', named: undefined, folder: '--directory-prefix' },
} as const

function* downloadTargets(kind: keyof typeof DIALECTS, args: readonly string[]): Generator<string> {
  const { to, long, named, folder } = DIALECTS[kind]
  const given: string[] = []
  let directory = ''
  let byName = kind === 'wget'
  const short = new RegExp(`^-[A-Za-z]*?${to}(.*)$`)
  for (const [index, arg] of args.entries()) {
    const [name, value] = arg.startsWith('--') ? splitOption(arg) : [arg, undefined]
    if (name === long) given.push(value ?? args[index + 1] ?? '-')
    else if (name === folder || arg === '-P') directory = value ?? args[index + 1] ?? ''
    else if (!arg.startsWith('--') && short.test(arg))
      given.push(short.exec(arg)![1]! || args[index + 1] || '-')
    else if (named?.test(arg)) byName = true
  }
  if (given.length === 0 && byName)
    for (const arg of args) {
      const name = /^(?:https?|ftp):\/\/[^/]+\/(?:.*\/)?([^/?#]+)/.exec(arg)?.[1]
      if (name !== undefined) given.push(name)
    }
  for (const path of given) yield directory === '' || path === '-' ? path : `${directory}/${path}`
}

const splitOption = (arg: string): [string, string | undefined] => {
  const equals = arg.indexOf('=')
  return equals < 0 ? [arg, undefined] : [arg.slice(0, equals), arg.slice(equals + 1)]
}

/** Any other program that reads a downloaded file prints what may be a piece of it. */
export const filtered: Builtin = (interpreter, argv, scope, stdin) => {
  const output = outputOf(argv, stdin)
  if (output !== UNKNOWN) return output
  const tainted = argv
    .slice(1)
    .some(arg => interpreter.files.read(arg, scope.cwds)?.some(text => text.includes(DOWNLOAD)))
  return tainted ? DOWNLOAD : output
}
