/** One word for a POSIX shell, whatever is in it. */
export const shellQuote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

export const shellJoin = (argv: readonly string[]): string => argv.map(shellQuote).join(' ')

/** `export` lines; a name that is no variable name cannot become anything else. */
export const exportLines = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map(([name, value]) => `export ${name}=${shellQuote(value)}`)
    .join('\n')
