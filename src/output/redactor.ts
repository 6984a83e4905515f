/** Replaces a secret. */
export const REDACTED = '[redacted]'

/** Shorter values would match ordinary text. */
const MIN_SECRET_BYTES = 4
const MIN_LINE_BYTES = 8
const MIN_BASE64_CHARACTERS = 8

export interface Redactor {
  /** Returns redacted bytes. Holds back bytes that may be the beginning of a secret. */
  push(chunk: Uint8Array): Buffer
  /** Returns the bytes held back. Call it at the end of the stream, when no byte can complete a secret any more. */
  flush(): Buffer
  /** True if bytes are held back, because the next chunk may complete a secret that begins in them. */
  readonly holding: boolean
  /** The bytes held back. Push them into a new redactor to continue there. */
  held(): Buffer
}

/** Use one redactor per stream: a secret may be split between two chunks. */
export const createRedactor = (patterns: readonly string[]): Redactor => {
  if (patterns.length === 0)
    return {
      push: chunk => asBuffer(chunk),
      flush: () => Buffer.alloc(0),
      holding: false,
      held: () => Buffer.alloc(0),
    }
  const matcher = createMatcher(patterns)
  let held = ''

  const take = (text: string, isEnd: boolean): Buffer => {
    const { clean, rest } = matcher.redact(text, isEnd)
    held = rest
    return Buffer.from(clean, 'latin1')
  }

  return {
    // Latin-1 keeps one character per byte, so that patterns and cuts work on bytes.
    push: chunk => take(held + asBuffer(chunk).toString('latin1'), false),
    flush: () => take(held, true),
    get holding() {
      return held !== ''
    },
    held: () => Buffer.from(held, 'latin1'),
  }
}

/** For short texts: errors, progress, names. */
export const createTextRedactor = (patterns: readonly string[]): ((text: string) => string) => {
  if (patterns.length === 0) return text => text
  const matcher = createMatcher(patterns)
  return text => {
    const { clean } = matcher.redact(Buffer.from(text).toString('latin1'), true)
    return Buffer.from(clean, 'latin1').toString('utf8')
  }
}

/** Length of the prefixes in the regular expression. Whole secrets can exceed the limit of the engine. */
const PREFIX = 32

/** Replaces patterns, the longest match first. `rest` is the end of the text that may begin a pattern. */
const createMatcher = (patterns: readonly string[]) => {
  const prefixes = new Set(patterns.map(pattern => pattern.slice(0, PREFIX)))
  const expression = toExpression([...prefixes].sort((a, b) => b.length - a.length))
  const byFirst = groupByFirst([...patterns].sort((a, b) => b.length - a.length))
  const candidates = (text: string, at: number) => byFirst.get(text.charCodeAt(at)) ?? []

  const mayContinue = (text: string, at: number): boolean => {
    const rest = text.slice(at)
    return candidates(text, at).some(pattern => pattern.length > rest.length && pattern.startsWith(rest))
  }

  /** Returns where a pattern may begin whose prefix is incomplete. */
  const openFrom = (text: string, from: number): number => {
    for (let at = Math.max(from, text.length - PREFIX + 1); at < text.length; at++)
      if (mayContinue(text, at)) return at
    return text.length
  }

  return {
    redact: (text: string, isEnd: boolean): { clean: string; rest: string } => {
      let clean = ''
      let from = 0
      let open = isEnd ? text.length : openFrom(text, 0)
      expression.lastIndex = 0
      for (let match = expression.exec(text); match !== null; match = expression.exec(text)) {
        const at = match.index
        if (at >= open) break
        if (!isEnd && mayContinue(text, at)) {
          open = at
          break
        }
        const whole = candidates(text, at).find(pattern => text.startsWith(pattern, at))
        expression.lastIndex = at + (whole?.length ?? 1)
        if (whole === undefined) continue
        clean += text.slice(from, at) + REDACTED
        from = at + whole.length
        if (open < from) open = openFrom(text, from)
      }
      return { clean: clean + text.slice(from, open), rest: text.slice(open) }
    },
  }
}

/** Returns the forms in which a secret is likely to be printed, as Latin-1 bytes. */
export const secretPatterns = (secrets: Iterable<string>): string[] => {
  const patterns = new Set<string>()
  for (const secret of secrets) {
    const trimmed = secret.trim()
    for (const value of new Set([secret, trimmed])) addForms(patterns, value)
    // A multi-line key is often printed indented or with line numbers.
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

/** Base64 of the value at any position of a longer text, such as `user:secret`. */
const base64Forms = (value: string): string[] => {
  const bytes = Buffer.from(value)
  const whole = bytes.toString('base64')
  const shifted = [0, 1, 2].map(shift => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    // Omit characters that depend on the neighbouring bytes.
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
