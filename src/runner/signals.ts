import { constants } from 'node:os'

/** A shell reports a signal as 128 + n. Only the numbers that every system shares are named. */
export const signalOf = (code: number): { code: number; signal: string | null } => ({
  code,
  signal: code > 128 ? (NAMES.get(code - 128) ?? null) : null,
})

const NAMES = new Map(
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
