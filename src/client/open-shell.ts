import { AppError } from '../jobs/errors.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import type { Session, SessionRequest, TerminalSize } from '../ports.ts'
import type { Client } from './daemon-client.ts'
import { createHold, type Hold } from './hold-machine.ts'

/** bash where the machine has it, else sh. */
const DEFAULT_SHELL: readonly string[] = ['sh', '-c', 'command -v bash >/dev/null && exec bash; exec sh']

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
 * exit status. `onSubmitted` gets the job while its machine is prepared.
 */
export const runInTerminal = async (
  client: Client,
  manifest: Readonly<Record<string, unknown>>,
  options: ShellOptions & { readonly record?: boolean; readonly onSubmitted?: (jobId: string) => void } = {},
): Promise<Shell> => {
  const hold = createHold({ record: options.record ?? false })
  const { command = DEFAULT_SHELL, signal = new AbortController().signal } = options
  const job = await client.submit(holding(manifest, hold), signal)
  options.onSubmitted?.(job.job_id)
  try {
    await untilRunning(client, job.job_id, signal)
    const shell = await openShell(client, job.job_id, { ...options, command: hold.wrap(command) })
    const exit = shell.exit.then(async code => {
      // A machine that has ended needs no release, and neither does one whose terminal was closed.
      if (code !== null) await hold.release(client, job.job_id, code).catch(() => {})
      return code
    })
    exit.catch(() => {})
    return { ...shell, exit }
  } catch (error) {
    await client.cancel(job.job_id).catch(() => {})
    throw error
  }
}

const holding = (manifest: Readonly<Record<string, unknown>>, hold: Hold): Record<string, unknown> => ({
  task: 'terminal',
  ...manifest,
  agentType: 'script' satisfies ManifestInput['agentType'],
  agent: { command: [...hold.command] },
})

const untilRunning = async (client: Client, id: string, signal: AbortSignal): Promise<void> => {
  for (let job = await client.get(id, signal); job.status !== 'running'; ) {
    if (job.status !== 'pending' && job.status !== 'provisioning')
      throw new AppError('unavailable', job.error?.message ?? `Job ${id} has ended: ${job.status}.`, {
        ...(job.error?.hint !== undefined && { hint: job.error.hint }),
      })
    job = await client.wait(id, { since: job.status, timeoutMs: 25_000, signal })
  }
}

const requestOf = ({ command = DEFAULT_SHELL, env, terminal }: ShellOptions): SessionRequest => ({
  argv: command,
  env: { TERM: 'xterm-256color', ...env },
  terminal: terminal ?? { columns: 80, rows: 24 },
})
