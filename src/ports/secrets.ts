export interface Secrets {
  /** Names that are configured, without resolving them. */
  names(): readonly string[]
  resolve(names: readonly string[], signal: AbortSignal): Promise<Record<string, string>>
}
