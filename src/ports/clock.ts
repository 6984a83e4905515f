export interface Clock {
  /** Wall clock in milliseconds: for what people read. It may jump. */
  now(): number
  /** Milliseconds that only go forward: for durations and deadlines. */
  monotonic(): number
  /** Whether a time server has confirmed the wall clock; absent where that cannot be asked. */
  isSynchronized?(): Promise<boolean>
}
