import type { JobView, WaitOptions } from '../engine/deputy.ts'
import { AppError } from '../jobs/errors.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import type { SessionRequest } from '../ports/session.ts'
import type { Client } from './daemon-client.ts'

/** A job that holds its machine while programs of the client run in it. */
export interface Hold {
  readonly jobId: string
  /** The program of a terminal, which ends the job when the terminal is closed. */
  wrap(argv: readonly string[]): readonly string[]
  /** Ends the job. Called by the client, not by the program: its last output must be read before the machine ends. */
  release(code: number): Promise<void>
}

/** The calls that a hold needs: the session of a browser has no stream. */
export interface HoldCalls {
  submit(manifest: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<JobView>
  get(id: string, signal?: AbortSignal): Promise<JobView>
  wait(id: string, options: WaitOptions): Promise<JobView>
  cancel(id: string): Promise<unknown>
  openSession(
    id: string,
    request: SessionRequest,
  ): Promise<{ readonly stream?: { resume(): unknown }; readonly exit: Promise<number | null> }>
}

interface HoldOptions {
  /** The job prints what the terminal shows. */
  readonly record?: boolean
  readonly signal?: AbortSignal
}

/** Submits the job and resolves when its machine is there. */
export const holdMachine = async (
  client: HoldCalls,
  manifest: Readonly<Record<string, unknown>>,
  { record = false, signal = new AbortController().signal }: HoldOptions = {},
): Promise<Hold> => {
  // In the workspace, which both sides see on every provider. The job removes it before its files are collected.
  const pipe = `.deputy-session-${crypto.randomUUID().slice(0, 13)}`
  const { job_id: jobId } = await client.submit(
    {
      task: 'terminal',
      ...manifest,
      agentType: 'script' satisfies ManifestInput['agentType'],
      agent: { command: ['sh', '-c', record ? PRINT_AND_HOLD : HOLD, 'sh', pipe] },
    },
    signal,
  )
  try {
    await untilRunning(client, jobId, signal)
  } catch (error) {
    await client.cancel(jobId).catch(() => {})
    throw error
  }
  return {
    jobId,
    wrap: argv => ['sh', '-c', ENTER, 'sh', pipe, ...(record ? recorded(argv, pipe) : argv)],
    release: async code => {
      const argv = ['sh', '-c', `${MAKE} echo "$2" >"$1"`, 'sh', pipe, String(code)]
      const { stream, exit } = await client.openSession(jobId, { argv, env: {} })
      stream?.resume()
      await exit
    },
  }
}

/** Runs `work` with the job that uses a machine: the one that runs, or one that holds the machine meanwhile. */
export const withMachine = async <T>(
  client: Client,
  machineId: string,
  task: string,
  work: (jobId: string) => Promise<T>,
): Promise<T> => {
  const machine = (await client.machines()).find(({ machine_id }) => machine_id === machineId)
  if (machine?.state === 'busy' && machine.job_id !== null) return work(machine.job_id)
  const hold = await holdMachine(client, { machine: machineId, task })
  let code = 1
  try {
    const result = await work(hold.jobId)
    code = 0
    return result
  } finally {
    await hold.release(code).catch(() => client.cancel(hold.jobId).catch(() => {}))
  }
}

const untilRunning = async (client: HoldCalls, id: string, signal: AbortSignal): Promise<void> => {
  for (let job = await client.get(id, signal); job.status !== 'running'; ) {
    if (job.status !== 'pending' && job.status !== 'provisioning')
      throw new AppError('unavailable', job.error?.message ?? `Job ${id} has ended: ${job.status}.`, {
        ...(job.error?.hint !== undefined && { hint: job.error.hint }),
      })
    job = await client.wait(id, { since: job.status, timeoutMs: 25_000, signal })
  }
}

// Either side may be first.
const MAKE = 'mkfifo -m 600 "$1" 2>/dev/null;'
const MAKE_LOG = 'mkfifo -m 600 "$1.log" 2>/dev/null;'
const HOLD = `${MAKE} read -r code <"$1"; rm -f "$1"; exit "\${code:-1}"`
// Skip the header line that `script` writes to its log.
const PRINT_AND_HOLD = `${MAKE_LOG} { read -r line; cat; } <"$1.log"; rm -f "$1.log"; ${HOLD}`
// When the terminal is closed, the client is gone and cannot release the job.
const ENTER = `${MAKE} pipe=$1; shift; trap : INT QUIT; trap 'echo 129 >"$pipe"; exit 129' HUP; "$@"`

const recorded = (argv: readonly string[], pipe: string): readonly string[] => {
  const line = argv.map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  return ['sh', '-c', `${MAKE_LOG} exec script -qefc "$2" "$1.log"`, 'sh', pipe, line]
}
