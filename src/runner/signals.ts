import { constants } from 'node:os'

/** A shell reports a signal as 128 + n. */
export const signalOf = (
  code: number,
  names: ReadonlyMap<number, string> = SHARED_SIGNALS,
): { code: number; signal: string | null } => ({
  code,
  signal: code > 128 ? (names.get(code - 128) ?? null) : null,
})

/** Signals of this computer. */
export const LOCAL_SIGNALS: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
)

/** Signals that have the same number on every system. */
const SHARED_SIGNALS: ReadonlyMap<number, string> = new Map(
  (
    [
      'SIGHUP',
      'SIGINT',
      'SIGQUIT',
      'SIGILL',
      'SIGABRT',
      'SIGFPE',
      'SIGKILL',
      'SIGSEGV',
      'SIGPIPE',
      'SIGALRM',
      'SIGTERM',
    ] as const
  ).map(name => [constants.signals[name], name]),
)
