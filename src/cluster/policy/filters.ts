import { DOWNLOAD, ENDLESS, isGlob, UNKNOWN } from './text.ts'

/** What a program prints of its input, given the words behind its name. */
export type Filter = (args: readonly string[], stdin: string) => string

const operands = (args: readonly string[]): string[] =>
  args.filter(arg => !arg.startsWith('-') || arg === '-')

/** Text that nobody knows stays so, and what a server sent remains that. */
const ofText =
  (change: (args: readonly string[], text: string) => string): Filter =>
  (args, stdin) => {
    if (stdin.includes(DOWNLOAD)) return DOWNLOAD
    return stdin.includes(UNKNOWN) ? UNKNOWN : change(args, stdin)
  }

/**
 * Some of the lines, and it is not asked which: those of a script all count. Of the names in a directory some are
 * not all.
 */
const some = (files: number): Filter =>
  ofText((args, text) =>
    operands(args).length > files || areNames(text) ? UNKNOWN : text.replaceAll(ENDLESS, ''),
  )

const areNames = (text: string): boolean => isGlob(text) && !/[^\n][ \t][^\n]/.test(text)

/** The first character of what is not known is taken for the slash that it is cut off for. */
const firstCharacter =
  (pattern: RegExp, otherwise: Filter): Filter =>
  (args, stdin) =>
    pattern.test(args.join(' ')) && !stdin.includes(DOWNLOAD)
      ? stdin
          .split('\n')
          .map(line => (line[0] === UNKNOWN ? '/' : line.slice(0, 1)))
          .join('\n')
      : otherwise(args, stdin)

const cut = ofText((args, text) => {
  const characters = optionValue(args, 'c') ?? optionValue(args, 'b')
  const fields = optionValue(args, 'f')
  if (characters !== undefined) return eachLine(text, line => pick([...line], characters).join(''))
  const delimiter = optionValue(args, 'd') ?? '\t'
  if (fields === undefined || delimiter === '') return UNKNOWN
  return eachLine(text, line =>
    line.includes(delimiter) ? pick(line.split(delimiter), fields).join(delimiter) : line,
  )
})

/** `1`, `2-`, `-3`, `1,3-5`. */
const pick = <T>(items: readonly T[], list: string): T[] => {
  const ranges = list.split(',').map(range => {
    const [from, to] = range.split('-')
    return { from: Number(from) || 1, to: to === undefined ? Number(from) : Number(to) || items.length }
  })
  return items.filter((_, index) => ranges.some(({ from, to }) => index + 1 >= from && index + 1 <= to))
}

const tr = ofText((args, text) => {
  const [from = '', to = ''] = operands(args).map(characterSet)
  if (args.some(arg => /^-\w*[cC]/.test(arg))) return UNKNOWN
  const removes = args.some(arg => /^-\w*d/.test(arg))
  if (args.some(arg => /^-\w*s/.test(arg)) && to === '') return text
  const table = new Map([...from].map((char, index) => [char, removes ? '' : (to[index] ?? to.at(-1) ?? '')]))
  return [...text].map(char => table.get(char) ?? char).join('')
})

const CLASSES: Readonly<Record<string, string>> = {
  '[:upper:]': 'A-Z',
  '[:lower:]': 'a-z',
  '[:digit:]': '0-9',
  '[:space:]': ' \t\n\r',
}

const characterSet = (text: string): string =>
  text
    .replace(/\[:\w+:\]/g, name => CLASSES[name] ?? '')
    .replace(/\\([nrt0\\])/g, (_, char: string) => ({ n: '\n', r: '\r', t: '\t', 0: '\0' })[char] ?? char)
    .replace(/(.)-(.)/g, (_, from: string, to: string) => {
      const [first, last] = [from.charCodeAt(0), to.charCodeAt(0)]
      if (last < first || last - first > 255) return from + to
      return String.fromCharCode(...Array.from({ length: last - first + 1 }, (_, index) => first + index))
    })

/** Replacing one plain text by another; other scripts of sed are not followed. */
const sed = ofText((args, text) => {
  const words = operands(args)
  const script = words[0] ?? ''
  if (words.length > 1 || areNames(text)) return UNKNOWN
  if (/^(?:\d*[pd$,\s]*)*$/.test(script)) return text
  const [, , pattern = '', replacement = '', flags = ''] =
    /^s([/|#,:@!])((?:(?!\1)[^\\]|\\.)*)\1((?:(?!\1)[^\\]|\\.)*)\1([gpI\d]*)$/s.exec(script) ?? []
  const [, start = '', inner = '', end = ''] = /^(\^?)(.*?)(\$?)$/s.exec(pattern) ?? []
  if (pattern === '' || /[.*[\]^$]/.test(inner)) return UNKNOWN
  const plain = (escaped: string): string => escaped.replace(/\\(.)/gs, '$1')
  const from = plain(inner)
  const to = plain(replacement)
  if (flags.includes('g') && start === '' && end === '') return text.replaceAll(from, () => to)
  return eachLine(text, line => {
    if (end !== '') return line.endsWith(from) ? line.slice(0, line.length - from.length) + to : line
    if (start !== '') return line !== '' && line.startsWith(from) ? to + line.slice(from.length) : line
    return line.replace(from, () => to)
  })
})

const base64 = (args: readonly string[], stdin: string): string => {
  if (!args.some(arg => /^-(?:\w*[dD]|-d)/.test(arg))) return UNKNOWN
  return ofText((_, text) => Buffer.from(text, 'base64').toString('utf8'))(args, stdin)
}

const openssl: Filter = (args, stdin) => {
  if (args[0] === 's_client') return DOWNLOAD
  return args.some(arg => /^-?base64$|^-a$/.test(arg)) ? base64(args, stdin) : UNKNOWN
}

const xxd = ofText((args, text) =>
  args.some(arg => /^-\w*r/.test(arg))
    ? Buffer.from(text.replace(/[^0-9a-fA-F]/g, ''), 'hex').toString('utf8')
    : UNKNOWN,
)

const rev = ofText((_, text) => eachLine(text, line => [...line].reverse().join('')))

const eachLine = (text: string, change: (line: string) => string): string =>
  text.split('\n').map(change).join('\n')

const optionValue = (args: readonly string[], letter: string): string | undefined => {
  const at = args.findIndex(arg => arg.startsWith(`-${letter}`))
  if (at < 0) return undefined
  return args[at]!.length > 2 ? args[at]!.slice(2) : args[at + 1]
}

/** Packed and unpacked again it is the same text. */
const same: Filter = (args, stdin) => (operands(args).length === 0 ? stdin : UNKNOWN)

export const FILTERS = new Map(
  Object.entries<Filter>({
    cut: firstCharacter(/^-[cb] ?1$/, cut),
    head: firstCharacter(/^-c ?1$/, (args, stdin) =>
      some(args[0] === '-n' || args[0] === '-c' ? 1 : 0)(args, stdin),
    ),
    tail: (args, stdin) => some(args[0] === '-n' || args[0] === '-c' ? 1 : 0)(args, stdin),
    grep: some(1),
    egrep: some(1),
    fgrep: some(1),
    sort: some(0),
    uniq: some(0),
    shuf: some(0),
    tac: some(0),
    tr,
    sed,
    gsed: sed,
    base64,
    openssl,
    xxd,
    rev,
    ...Object.fromEntries(
      'gzip gunzip zcat bzip2 bunzip2 xz unxz xzcat zstd unzstd lz4 pv mbuffer iconv dos2unix expand'
        .split(' ')
        .map(name => [name, same]),
    ),
  }),
)
