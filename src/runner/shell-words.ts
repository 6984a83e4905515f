/** Quotes one word for a POSIX shell. Single quotes, because an interactive bash expands `!` within double quotes. */
export const shellQuote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** Quotes a word only where a shell would not read it as it stands. */
export const quoteIfNeeded = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : shellQuote(word)

export const shellJoin = (words: readonly string[]): string => words.map(shellQuote).join(' ')

/** Parses the output of `shellJoin`; undefined if the text is not a list of words, e.g. with an unclosed quote. */
export const splitWords = (line: string): string[] | undefined => {
  const words: string[] = []
  let word: string | undefined
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!
    if (character === "'") {
      const end = line.indexOf("'", at + 1)
      if (end < 0) return undefined
      word = (word ?? '') + line.slice(at + 1, end)
      at = end
    } else if (character === '\\') {
      if (at + 1 === line.length) return undefined
      word = (word ?? '') + line[++at]!
    } else if (character === ' ') {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (word !== undefined) words.push(word)
  return words
}
