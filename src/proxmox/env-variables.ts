export type Environment = Readonly<Record<string, string | undefined>>

/** The trimmed value of the first variable that is not blank. */
export const readVariable = (env: Environment, ...names: string[]): string | undefined => {
  for (const name of names) {
    const value = env[name]?.trim()
    if (value) return value
  }
  return undefined
}
