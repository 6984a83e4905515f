import { inflateSync } from 'node:zlib'

/** A file whose new content is in the patch as a whole. */
export interface BinaryChange {
  /** Ids of what the file held and of what it shall hold, as git counts them. */
  readonly before: string
  readonly after: string
  readonly content: Buffer
}

const INDEX = /^index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: [0-7]{6})?$/
const LITERAL = /^literal (\d{1,10})$/

/** Reads the part `GIT binary patch` of a section; throws when it is damaged. Deputy writes no deltas, so none are read. */
export const parseBinary = (section: string): BinaryChange => {
  const lines = section.split('\n')
  const start = lines.indexOf('GIT binary patch')
  const [, before, after] = INDEX.exec(lines[start - 1] ?? '') ?? []
  const size = Number(LITERAL.exec(lines[start + 1] ?? '')?.[1])
  if (before === undefined || after === undefined || !Number.isSafeInteger(size))
    throw new Error('it has no literal content')
  const end = lines.indexOf('', start)
  const packed = Buffer.concat(lines.slice(start + 2, end).map(decodeLine))
  const content = inflateSync(packed, { maxOutputLength: size + 1 })
  if (content.length !== size) throw new Error(`it has ${content.length} bytes instead of ${size}`)
  return { before, after, content }
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~'
const DIGITS = new Map([...ALPHABET].map((char, value) => [char, value]))

/** Led by a letter for its length, then five digits of base 85 for each four bytes. */
const decodeLine = (line: string): Buffer => {
  const letter = line.charCodeAt(0)
  const length = letter >= 97 ? letter - 70 : letter - 64
  const bytes = Buffer.alloc(Math.ceil((line.length - 1) / 5) * 4)
  if (!/^[A-Za-z]$/.test(line[0] ?? '') || length > bytes.length) throw new Error('a line has a wrong length')
  for (let at = 1, to = 0; at < line.length; at += 5, to += 4) {
    let value = 0
    for (const char of line.slice(at, at + 5)) value = value * 85 + digit(char)
    bytes.writeUInt32BE(value, to)
  }
  return bytes.subarray(0, length)
}

const digit = (char: string): number => {
  const value = DIGITS.get(char)
  if (value === undefined) throw new Error(`'${char}' is no digit of base 85`)
  return value
}
