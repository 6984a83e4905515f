/** The `runtime` of a batch. The engine runs batches itself, so no provider has this name. */
export const BATCH = 'batch'

/** A batch, encoded as the command of a job: `parallel --timeout=300 --cwd=/work -- first second…`. */
export interface Batch {
  readonly commands: readonly string[]
  /** Seconds per command. */
  readonly timeout?: number | undefined
  /** Working directory of each command. */
  readonly cwd?: string | undefined
}

export const batchCommand = ({ commands, timeout, cwd }: Batch): string[] => [
  'parallel',
  ...(timeout === undefined ? [] : [`--timeout=${timeout}`]),
  ...(cwd === undefined ? [] : [`--cwd=${cwd}`]),
  '--',
  ...commands,
]

/** Returns undefined when the command is not a batch. */
export const parseBatch = (command: unknown): Batch | undefined => {
  if (!Array.isArray(command) || command[0] !== 'parallel') return undefined
  const words = command.map(String)
  const end = words.indexOf('--')
  if (end < 0 || end === words.length - 1) return undefined
  const value = (name: string): string | undefined =>
    words
      .slice(1, end)
      .find(word => word.startsWith(`--${name}=`))
      ?.slice(name.length + 3)
  return { commands: words.slice(end + 1), timeout: Number(value('timeout')) || undefined, cwd: value('cwd') }
}
