/**
 * Makes a job's output safe for a terminal while it streams. Colours stay; every other control sequence is
 * shown as `^[` and its text. A lone carriage return becomes a new line, so that nothing can be overwritten.
 */
export const createSafeOutput = (options: { colors: boolean }) => {
  const decoder = new TextDecoder()
  // An escape sequence or a CR at the end of a chunk may go on in the next one.
  let held = ''

  const clean = (text: string): string =>
    text.replace(SEQUENCES, match => {
      if (match === '\r\n') return '\n'
      if (match === '\r') return '\n'
      if (match.length > 1) return options.colors ? match : ''
      const code = match.codePointAt(0)!
      if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`
      return code === 0x7f ? '^?' : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
    })

  return {
    push(data: Uint8Array): string {
      const text = held + decoder.decode(data, { stream: true })
      const cut = UNFINISHED.exec(text)
      held = cut ? cut[0] : ''
      return clean(cut ? text.slice(0, cut.index) : text)
    },
    /** Returns the held-back text and resets a colour that is still on. */
    end(): string {
      const text = clean(held + decoder.decode())
      held = ''
      return options.colors ? `${text}\x1b[0m` : text
    },
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const SEQUENCES = /\x1b\[[0-9;:]{0,40}m|\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const UNFINISHED = /(?:\x1b(?:\[[0-9;:]{0,40})?|\r)$/
