/** Counts Ctrl-C and SIGTERM. The first cancels the job; the second exits immediately. */
export interface Interrupts {
  readonly count: number
  dispose(): void
}

export const onInterrupt = (first: () => void, second: () => void): Interrupts => {
  let count = 0
  const handle = (): void => {
    count += 1
    if (count === 1) first()
    else second()
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, handle)
  return {
    get count() {
      return count
    },
    dispose: () => {
      for (const signal of signals) process.off(signal, handle)
    },
  }
}
