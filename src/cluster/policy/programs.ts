import { FILTERS } from './filters.ts'
import { baseName, DOWNLOAD, ENDLESS, UNKNOWN } from './text.ts'

const MAX_OUTPUT = 65_536

/** What a program prints, as far as it can be told from its words and its input. */
export const outputOf = (argv: readonly string[], stdin: string): string => {
  const name = baseName(argv[0] ?? '')
  const program = PROGRAMS.get(name) ?? FILTERS.get(name)
  if (program) return program(argv.slice(1), stdin).slice(0, MAX_OUTPUT)
  return stdin.includes(DOWNLOAD) ? DOWNLOAD : UNKNOWN
}

type Program = (args: readonly string[], stdin: string) => string

const silent: Program = () => ''
const download: Program = () => DOWNLOAD
const words = (args: readonly string[]): string[] => args.filter(arg => !arg.startsWith('-'))

const echo: Program = args => {
  let at = 0
  let options = ''
  for (; /^-[neE]+$/.test(args[at] ?? ''); at++) options += args[at]
  const text = args.slice(at).join(' ')
  return `${options.includes('e') ? decodeEscapes(text) : text}${options.includes('n') ? '' : '\n'}`
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

const find: Program = args => {
  const end = args.findIndex(arg => /^[-(!]/.test(arg))
  const starts = (end < 0 ? args : args.slice(0, end)).filter(start => start !== '')
  if (args.some(arg => /^-i?(?:name|path|regex)$/.test(arg))) return UNKNOWN
  const separator = args.includes('-print0') ? '\0' : '\n'
  return starts
    .flatMap(start => [start, `${start}/*/*`])
    .map(path => path + separator)
    .join('')
}

/** A name among those of every machine's disks. */
const disks: Program = args => (args.some(arg => /^-\w*p|^--paths$|PATH/.test(arg)) ? '/dev/sda\n' : 'sda\n')

const located: Program = args => {
  const names = words(args).filter(word => word !== '')
  return names.some(name => name.includes(UNKNOWN))
    ? UNKNOWN
    : names.map(name => `/usr/bin/${baseName(name)}\n`).join('')
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
    find,
    ls: names,
    yes,
    realpath: list,
    readlink: list,
    dirname: args => `${args[0]?.replace(/\/+[^/]*\/*$/, '') || '/'}\n`,
    basename: args =>
      `${/^\/+$/.test(args[0] ?? '') ? '/' : (args[0] ?? '').replace(/\/+$/, '').replace(/^.*\//s, '')}\n`,
    which: located,
    type: located,
    lsblk: disks,
    nc: download,
    ncat: download,
    netcat: download,
    socat: download,
    telnet: download,
    fetch: download,
    aria2c: download,
    http: download,
    https: download,
    xh: download,
    lynx: download,
    ...Object.fromEntries(
      'true : false [ test cd rm rmdir mkdir chmod chown touch sleep wait kill exit return break continue'
        .split(' ')
        .map(name => [name, silent]),
    ),
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
