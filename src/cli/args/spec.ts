/** How a command is described: help, completion, parsing and the reference are all made from this. */
export interface FlagSpec {
  /** A `list` may be given several times. A `duration` is seconds: `90`, `90s`, `5m`, `2h`. */
  readonly type: 'boolean' | 'string' | 'number' | 'duration' | 'list'
  readonly summary: string
  readonly short?: string
  /** What the help calls the value. */
  readonly value?: string
  readonly choices?: readonly string[]
  /** Values that a shell offers; others are allowed. */
  readonly suggest?: readonly string[] | 'machines' | 'nodes' | 'secrets' | 'agents'
}

export type FlagSpecs = Readonly<Record<string, FlagSpec>>

export type FlagValues<F extends FlagSpecs> = {
  readonly [K in keyof F]: F[K]['type'] extends 'boolean'
    ? boolean
    : F[K]['type'] extends 'number' | 'duration'
      ? number | undefined
      : F[K]['type'] extends 'list'
        ? readonly string[]
        : string | undefined
}

export interface Parsed<F extends FlagSpecs> {
  readonly flags: FlagValues<F>
  /** Words before `--` that are not flags. */
  readonly args: readonly string[]
  /** Everything after `--` as it was typed, or undefined without `--`. */
  readonly rest: readonly string[] | undefined
}

/** Flags that every command takes. */
export const GLOBAL_FLAGS = {
  help: { type: 'boolean', short: 'h', summary: 'Show this help' },
  'no-color': { type: 'boolean', summary: 'Disable colours, like NO_COLOR=1' },
} as const satisfies FlagSpecs

export const JSON_FLAG = { type: 'boolean', summary: 'Print JSON' } as const
