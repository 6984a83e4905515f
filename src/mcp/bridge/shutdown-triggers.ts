const PARENT_EVERY_MS = 1000

/**
 * Calls back when this process has no reason to live any more: a signal, or the death of the client that started
 * it. A client that is killed closes nothing; servers that wait for it are found by the hundred on users' machines.
 */
export const onShutdown = (exit: () => void): void => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, exit)
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && exit(), PARENT_EVERY_MS).unref()
  process.stdout.on('error', exit)
  // Nobody reads the log any more: that is no reason to stop.
  process.stderr.on('error', () => {})
}
