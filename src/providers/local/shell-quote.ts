/** Quotes a word for a POSIX shell. NUL is not supported: no argument can contain it. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

export const isEnvName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)
