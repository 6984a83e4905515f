const MAX_TEXTS = 256
/** What is made of a text takes many times its room. */
const MAX_LENGTH = 262_144

/** Remembers what was made of the latest texts. */
export const memo = <T>(make: (text: string) => T): ((text: string) => T) => {
  const known = new Map<string, T>()
  let length = 0
  return text => {
    const before = known.get(text)
    if (before !== undefined) return before
    const made = make(text)
    known.set(text, made)
    length += text.length
    for (const oldest of known.keys()) {
      if (known.size <= MAX_TEXTS && length <= MAX_LENGTH) break
      known.delete(oldest)
      length -= oldest.length
    }
    return made
  }
}
