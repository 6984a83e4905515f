import { baseName, DOWNLOAD, ENDLESS, UNKNOWN } from './text.ts'

const MAX_OUTPUT = 65_536

/** What a program prints, as far as it can be told from its words and its input. */
export const outputOf = (argv: readonly string[], stdin: string): string => {
  const name = baseName(argv[0] ?? '')
  const program = PROGRAMS.get(name)
  if (program) return program(argv.slice(1), stdin).slice(0, MAX_OUTPUT)
  return stdin.includes(DOWNLOAD) ? DOWNLOAD : UNKNOWN
}

type Program = (args: readonly string[], stdin: string) => string

const silent: Program = () => ''
const download: Program = () => DOWNLOAD
const words = (args: readonly string[]): string[] => args.filter(arg => !arg.startsWith('-'))

const echo: Program = args => {
  let at = 0
  let escapes = false
  for (; /^-[neE]+$/.test(args[at] ?? ''); at++) escapes ||= args[at]!.includes('e')
  const text = args.slice(at).join(' ')
  return `${escapes ? decodeEscapes(text) : text}\n`
}

/** The format is used again until the arguments are gone, as the shell does. */
const printf: Program = args => {
  const rest = args[0] === '--' ? args.slice(1) : args
  const format = decodeEscapes(rest[0] ?? '')
  const values = rest.slice(1, 257)
  let text = ''
  do {
    text += format.replace(/%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))/g, (match, kind: string | undefined) => {
      if (kind === undefined) return match === '%%' ? '%' : match
      const value = values.shift() ?? ''
      return kind === 'b' ? decodeEscapes(value) : value
    })
  } while (values.length > 0 && /%[^%]/.test(format) && text.length < MAX_OUTPUT)
  return text
}

const passes: Program = (args, stdin) =>
  words(args).length === 0 || words(args)[0] === '-' ? stdin : UNKNOWN

const base64: Program = (args, stdin) => {
  if (!args.some(arg => /^-(?:\w*[dD]|-d)/.test(arg))) return UNKNOWN
  if (stdin.includes(DOWNLOAD)) return DOWNLOAD
  return stdin.includes(UNKNOWN) ? UNKNOWN : Buffer.from(stdin, 'base64').toString('utf8')
}

const xxd: Program = (args, stdin) => {
  if (!args.some(arg => /^-\w*r/.test(arg))) return UNKNOWN
  return Buffer.from(stdin.replace(/[^0-9a-fA-F]/g, ''), 'hex').toString('utf8')
}

const rev: Program = (_, stdin) =>
  stdin
    .split('\n')
    .map(line => [...line].reverse().join(''))
    .join('\n')

const find: Program = args => {
  const end = args.findIndex(arg => /^[-(!]/.test(arg))
  const starts = end < 0 ? args : args.slice(0, end)
  return args.some(arg => /^-i?(?:name|path|regex)$/.test(arg)) ? UNKNOWN : `${starts.join('\n')}\n`
}

const list: Program = args => `${words(args).join('\n')}\n`

/** ls prints the names in a directory: all of them, as `*` is. */
const names: Program = args => {
  const paths = words(args)
  if (args.some(arg => /^-\w*d|^--directory$/.test(arg))) return `${paths.join('\n') || '.'}\n`
  if (paths.length === 0) return '*\n'
  return paths.map(path => (/^\.{0,2}$|\/$|^\/[^/]*$/.test(path) ? `${path}\n*\n` : `${path}\n`)).join('')
}

/** Its line again and again; twice stands for all of them. */
const yes: Program = args => {
  const line = `${words(args).join(' ') || 'y'}\n`
  return line + line + ENDLESS
}

const PROGRAMS = new Map(
  Object.entries<Program>({
    echo,
    printf,
    tac: passes,
    base64,
    xxd,
    rev,
    find,
    ls: names,
    yes,
    realpath: list,
    readlink: list,
    dirname: args => `${args[0]?.replace(/\/+[^/]*\/*$/, '') || '/'}\n`,
    fetch: download,
    aria2c: download,
    http: download,
    https: download,
    xh: download,
    lynx: download,
    true: silent,
    ':': silent,
    false: silent,
    cd: silent,
    rm: silent,
    mkdir: silent,
  }),
)

const decodeEscapes = (text: string): string =>
  text.replace(
    /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|0?([0-7]{1,3})|(.))/gs,
    (_, hex, unicode, octal, char) => {
      if (hex ?? unicode) return String.fromCharCode(Number.parseInt(hex ?? unicode, 16))
      if (octal) return String.fromCharCode(Number.parseInt(octal, 8))
      return { n: '\n', t: '\t', r: '\r', a: '', b: '', e: '', f: '', v: '', c: '' }[char as string] ?? char
    },
  )
