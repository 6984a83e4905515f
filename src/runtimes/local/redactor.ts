/** What stands in the place of a secret. */
export const REDACTED = '[redacted]'

/** Shorter values would blot out ordinary text. */
const MIN_SECRET_BYTES = 4
const MIN_LINE_BYTES = 8
const MIN_BASE64_CHARACTERS = 8

export interface Redactor {
  /** The stream so far without secrets; holds back only what may be the beginning of one. */
  push(chunk: Uint8Array): Buffer
  /** What was held back, at the end of the stream. */
  flush(): Buffer
  /** Something is held back now. */
  readonly holding: boolean
  /** What is held back now: pushed into a new redactor, it is held back there. */
  held(): Buffer
}

/** One redactor per stream: a secret may be cut by the border of two chunks. */
export const createRedactor = (patterns: readonly string[]): Redactor => {
  if (patterns.length === 0)
    return {
      push: chunk => asBuffer(chunk),
      flush: () => Buffer.alloc(0),
      holding: false,
      held: () => Buffer.alloc(0),
    }
  const expression = toExpression(patterns)
  const byFirst = groupByFirst(patterns)
  const longest = Math.max(...patterns.map(pattern => pattern.length))
  let held = ''

  /** Where a pattern may have begun that is not complete yet. */
  const openFrom = (text: string, from: number): number => {
    for (let at = Math.max(from, text.length - longest + 1); at < text.length; at++) {
      const candidates = byFirst.get(text.charCodeAt(at))
      if (candidates === undefined) continue
      const rest = text.slice(at)
      if (candidates.some(pattern => pattern.length > rest.length && pattern.startsWith(rest))) return at
    }
    return text.length
  }

  return {
    push: chunk => {
      // Latin-1 keeps one character per byte, so that patterns and cuts work on bytes.
      const text = held + asBuffer(chunk).toString('latin1')
      let out = ''
      let from = 0
      let open = openFrom(text, 0)
      for (;;) {
        expression.lastIndex = from
        const match = expression.exec(text)
        if (match === null || match.index >= open) break
        out += text.slice(from, match.index) + REDACTED
        from = match.index + match[0].length
        if (open < from) open = openFrom(text, from)
      }
      held = text.slice(open)
      return Buffer.from(out + text.slice(from, open), 'latin1')
    },
    flush: () => {
      const rest = held.replace(expression, REDACTED)
      held = ''
      return Buffer.from(rest, 'latin1')
    },
    get holding() {
      return held !== ''
    },
    held: () => Buffer.from(held, 'latin1'),
  }
}

/** For short texts: errors, progress. */
export const createTextRedactor = (patterns: readonly string[]): ((text: string) => string) => {
  if (patterns.length === 0) return text => text
  const expression = toExpression(patterns)
  return text =>
    Buffer.from(Buffer.from(text).toString('latin1').replace(expression, REDACTED), 'latin1').toString('utf8')
}

/** Every form in which a secret is likely to be printed, as bytes in Latin-1. */
export const secretPatterns = (secrets: Iterable<string>): string[] => {
  const patterns = new Set<string>()
  for (const secret of secrets) {
    const trimmed = secret.trim()
    for (const value of new Set([secret, trimmed])) addForms(patterns, value)
    // A key of many lines is often printed indented or numbered.
    for (const line of trimmed.split(/\r?\n/))
      if (line.trim().length >= MIN_LINE_BYTES) patterns.add(bytesOf(line.trim()))
  }
  return [...patterns].sort((a, b) => b.length - a.length)
}

const addForms = (patterns: Set<string>, value: string): void => {
  if (Buffer.byteLength(value) < MIN_SECRET_BYTES) return
  patterns.add(bytesOf(value))
  patterns.add(bytesOf(JSON.stringify(value).slice(1, -1)))
  const encoded = encodeURIComponent(Buffer.from(value).toString())
  patterns.add(encoded)
  patterns.add(encoded.replace(/%[0-9A-F]{2}/g, triplet => triplet.toLowerCase()))
  patterns.add(encoded.replace(/%20/g, '+'))
  for (const form of base64Forms(value)) {
    patterns.add(form)
    patterns.add(form.replace(/\+/g, '-').replace(/\//g, '_'))
  }
}

/** Base64 of the value wherever it stands in a longer text: `user:secret` too. */
const base64Forms = (value: string): string[] => {
  const bytes = Buffer.from(value)
  const whole = bytes.toString('base64')
  const shifted = [0, 1, 2].map(shift => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    // Characters that also depend on the neighbours are left out.
    const first = shift === 0 ? 0 : shift + 1
    const spare = (shift + bytes.length) % 3
    return text.slice(first, spare === 0 ? undefined : spare - 4)
  })
  return [whole, ...shifted.filter(text => text.length >= MIN_BASE64_CHARACTERS)]
}

const toExpression = (patterns: readonly string[]): RegExp =>
  new RegExp(patterns.map(pattern => pattern.replace(/[\\^$+*?.()|{}[\]/-]/g, '\\$&')).join('|'), 'g')

const groupByFirst = (patterns: readonly string[]): Map<number, string[]> => {
  const groups = new Map<number, string[]>()
  for (const pattern of patterns) {
    const first = pattern.charCodeAt(0)
    groups.set(first, [...(groups.get(first) ?? []), pattern])
  }
  return groups
}

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1')

const asBuffer = (chunk: Uint8Array): Buffer =>
  Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
