export interface Clock {
  /** Wall clock in milliseconds, for times that people read. It may jump. */
  now(): number
  /** Milliseconds that never go back, for durations and deadlines. */
  monotonic(): number
  /** Whether a time server has confirmed the wall clock; absent where the system cannot report it. */
  isSynchronized?(): Promise<boolean>
}
