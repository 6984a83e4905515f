import type { Session } from '../../ports.ts'

/** Connects this terminal with a session until it ends. Resolves with the exit status; null when it was killed. */
export const attachTerminal = async (
  { stream, exit, resize }: Session,
  { stdin, stdout }: Pick<NodeJS.Process, 'stdin' | 'stdout'>,
): Promise<number | null> => {
  const isTerminal = stdin.isTTY === true
  const onResize = (): void => resize(sizeOf(stdout))
  const onSignal = (): void => void stream.destroy()
  const restore = (): void => {
    if (isTerminal) stdin.setRawMode(false)
  }
  // Also when this process ends early, as after SIGHUP.
  process.once('exit', restore)
  for (const signal of SIGNALS) process.on(signal, onSignal)
  if (isTerminal) stdin.setRawMode(true)
  stdout.on('resize', onResize)
  stdin.pipe(stream)
  const isPrinted = new Promise<void>(resolve => {
    stream.on('data', (chunk: Buffer) => {
      if (stdout.write(chunk)) return
      stream.pause()
      stdout.once('drain', () => stream.resume())
    })
    stream.once('close', resolve)
    stream.once('end', resolve)
  })
  try {
    await isPrinted
    return await exit
  } finally {
    stdin.unpipe(stream)
    stdin.pause()
    stdout.off('resize', onResize)
    for (const signal of SIGNALS) process.off(signal, onSignal)
    process.off('exit', restore)
    restore()
  }
}

const SIGNALS = ['SIGHUP', 'SIGTERM'] as const

/** A pipe has no size. */
export const sizeOf = ({ columns, rows }: Pick<NodeJS.WriteStream, 'columns' | 'rows'>) => ({
  columns: columns || 80,
  rows: rows || 24,
})
