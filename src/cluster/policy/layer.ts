/** Names and what they mean, over those of an outer layer that stay as they are. */
export interface Layer<T> {
  get(name: string): T | undefined
  set(name: string, value: T): void
  delete(name: string): void
}

/** A subshell costs nothing until it changes something, however many names are known. */
export const layer = <T>(below?: Layer<T>): Layer<T> => {
  let own: Map<string, T | undefined> | undefined
  const change = (name: string, value: T | undefined): void => {
    own ??= new Map()
    own.set(name, value)
  }
  return {
    get: name => (own?.has(name) ? own.get(name) : below?.get(name)),
    set: change,
    delete: name => change(name, undefined),
  }
}
