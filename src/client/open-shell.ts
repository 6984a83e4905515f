import type { Session, SessionRequest, TerminalSize } from '../ports.ts'
import type { Client } from './daemon-client.ts'
import { DEFAULT_SHELL } from './default-shell.ts'
import { holdMachine } from './hold-machine.ts'

export interface ShellOptions {
  /** A shell unless told otherwise. */
  readonly command?: readonly string[]
  /** More variables for the program. */
  readonly env?: Readonly<Record<string, string>>
  /** The size of its terminal; 80 × 24 unless told otherwise. */
  readonly terminal?: TerminalSize
  readonly signal?: AbortSignal
}

/** A program in the machine of a job. */
export interface Shell extends Session {
  /** The job that the program runs beside, or that holds the machine for it. */
  readonly jobId: string
}

/** Opens a terminal beside a running job. */
export const openShell = async (
  client: Client,
  jobId: string,
  options: ShellOptions = {},
): Promise<Shell> => ({
  ...(await client.openSession(jobId, requestOf(options), options.signal)),
  jobId,
})

/**
 * Submits a job that only holds its machine, and opens a terminal in it. The job ends with the terminal and has its
 * exit status.
 */
export const runInTerminal = async (
  client: Client,
  manifest: Readonly<Record<string, unknown>>,
  options: ShellOptions & { readonly record?: boolean } = {},
): Promise<Shell> => {
  const { command = DEFAULT_SHELL } = options
  const held = await holdMachine(client, manifest, options)
  try {
    const shell = await openShell(client, held.jobId, { ...options, command: held.wrap(command) })
    const exit = shell.exit.then(async code => {
      // A machine that has ended needs no release, and neither does one whose terminal was closed.
      if (code !== null) await held.release(code).catch(() => {})
      return code
    })
    exit.catch(() => {})
    return { ...shell, exit }
  } catch (error) {
    await client.cancel(held.jobId).catch(() => {})
    throw error
  }
}

const requestOf = ({ command = DEFAULT_SHELL, env, terminal }: ShellOptions): SessionRequest => ({
  argv: command,
  env: { TERM: 'xterm-256color', ...env },
  terminal: terminal ?? { columns: 80, rows: 24 },
})
