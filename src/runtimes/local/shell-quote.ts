/** A word for a POSIX shell, whatever it holds (NUL excepted, which no argument can hold). */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

export const isEnvName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)
