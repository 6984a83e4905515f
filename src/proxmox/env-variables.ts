export type Environment = Readonly<Record<string, string | undefined>>

/** The first of these names that holds more than white space, trimmed. */
export const readVariable = (env: Environment, ...names: string[]): string | undefined => {
  for (const name of names) {
    const value = env[name]?.trim()
    if (value) return value
  }
  return undefined
}
