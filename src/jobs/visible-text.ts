/**
 * Text of a job, made safe for one line on a terminal: what would move the cursor, change the title or turn
 * the reading direction is shown instead of obeyed.
 */
export const visible = (text: string): string =>
  text.replace(UNSAFE, char => {
    if (char === '\t') return ' '
    const code = char.codePointAt(0)!
    if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`
    return code === 0x7f ? '^?' : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
  })

// Control characters of both ranges, line and paragraph separators, and the overrides of bidirectional text.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** One line of at most `width` characters. */
export const oneLine = (text: string, width: number): string => {
  const line = visible(text.replace(/\s+/g, ' ').trim())
  return line.length > width ? `${line.slice(0, Math.max(0, width - 1))}…` : line
}
