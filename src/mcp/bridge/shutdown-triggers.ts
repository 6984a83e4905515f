const PARENT_EVERY_MS = 1000

/**
 * Calls `exit` on a signal, or when the client that started this process has died. A killed client may leave stdin
 * open, so the parent process is polled: otherwise orphaned bridges pile up.
 */
export const onShutdown = (exit: () => void): void => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, exit)
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && exit(), PARENT_EVERY_MS).unref()
  process.stdout.on('error', exit)
  // Keep running when the log can no longer be written.
  process.stderr.on('error', () => {})
}
