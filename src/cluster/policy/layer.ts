/**
 * Names and what they mean, over those of an outer layer that stay as they are. A subshell costs nothing until it
 * changes something, however many names are known. A class, because a script makes them by the thousand.
 */
export class Layer<T> {
  readonly #below: Layer<T> | undefined
  #own: Map<string, T | undefined> | undefined

  constructor(below?: Layer<T>) {
    // What holds nothing of its own need not be asked.
    this.#below = below && below.#own === undefined ? below.#below : below
  }

  get(name: string): T | undefined {
    for (let layer: Layer<T> | undefined = this; layer !== undefined; layer = layer.#below)
      if (layer.#own?.has(name)) return layer.#own.get(name)
    return undefined
  }

  set(name: string, value: T | undefined): void {
    this.#own ??= new Map()
    this.#own.set(name, value)
  }

  delete(name: string): void {
    if (this.get(name) !== undefined) this.set(name, undefined)
  }

  /** Names that mean nothing in this layer, whatever they meant below. */
  *deleted(): Generator<string> {
    for (const [name, value] of this.#own ?? []) if (value === undefined) yield name
  }
}
