export interface Secrets {
  /** Names that could be resolved, without resolving them. */
  names(): readonly string[]
  resolve(names: readonly string[], signal: AbortSignal): Promise<Record<string, string>>
}
