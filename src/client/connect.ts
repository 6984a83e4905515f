import { resolveHome } from '../config/home.ts'
import type { JobPage, JobResult, ListFilter, MachineView } from '../engine/deputy.ts'
import { AppError } from '../jobs/errors.ts'
import type { JobEvent } from '../jobs/job.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import type { ClusterStatusView } from '../routing/cluster-status.ts'
import { VERSION } from '../version.ts'
import { type Client, connect as connectControl } from './daemon-client.ts'
import { ensureDaemon } from './ensure-daemon.ts'
import { createJobHandle, type JobHandle, type OutputText } from './job-handle.ts'

export interface ConnectOptions {
  /** Address of a daemon, such as `http://127.0.0.1:8760`; without it, the daemon of this user, started if needed. */
  readonly url?: string
  /** The content of the file `token` (or `token-readonly`) in the daemon's state directory. */
  readonly token?: string
  /** Shown as the origin of jobs; `client` unless told otherwise. */
  readonly origin?: string
  /** Variables such as `DEPUTY_HOME` and `XDG_STATE_HOME`; those of this process unless told otherwise. */
  readonly env?: NodeJS.ProcessEnv
  readonly signal?: AbortSignal
}

export interface RunOptions {
  /** Called with output as it is printed. */
  readonly onOutput?: (output: OutputText) => void
  /** Aborting cancels the job; the promise still resolves with its result. */
  readonly signal?: AbortSignal
}

export interface DeputyClient extends AsyncDisposable {
  /**
   * Submits a job and resolves when it has ended. A string is a shell script. A job that fails resolves, too: look at
   * `status` and `exit_code`.
   */
  run(manifest: string | ManifestInput, options?: RunOptions): Promise<JobResult>
  /** Resolves as soon as the job is stored. */
  submit(manifest: string | ManifestInput, signal?: AbortSignal): Promise<JobHandle>
  job(id: string): JobHandle
  jobs(filter?: ListFilter, signal?: AbortSignal): Promise<JobPage>
  /** Events of all jobs, from now on. */
  events(signal?: AbortSignal): AsyncIterable<JobEvent>
  machines(): Promise<readonly MachineView[]>
  /** This computer and the user's nodes, with their load. */
  nodes(): Promise<ClusterStatusView>
  close(): Promise<void>
}

/** Connects to the daemon of this user (and starts it when none runs), or to the one at `url`. */
export const connect = async (options: ConnectOptions = {}): Promise<DeputyClient> => {
  const client = options.url === undefined ? await connectToOwn(options) : connectToUrl(options.url, options)

  const submit = async (manifest: string | ManifestInput, signal?: AbortSignal): Promise<JobHandle> => {
    const job = await client.submit(typeof manifest === 'string' ? { task: manifest } : manifest, signal)
    return createJobHandle(client, job.job_id)
  }

  const run = async (
    manifest: string | ManifestInput,
    { onOutput, signal }: RunOptions = {},
  ): Promise<JobResult> => {
    signal?.throwIfAborted()
    const job = await submit(manifest)
    // A job that has just ended refuses to be cancelled.
    const cancel = (): void => void job.cancel().catch(() => {})
    signal?.addEventListener('abort', cancel, { once: true })
    if (signal?.aborted) cancel()
    try {
      if (onOutput) for await (const output of job.follow()) onOutput(output)
      return await job.result()
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  const close = async (): Promise<void> => client.close()

  return {
    run,
    submit,
    job: id => createJobHandle(client, id),
    jobs: (filter, signal) => client.list(filter, signal),
    events: (signal = new AbortController().signal) => client.followEvents({ signal }),
    machines: () => client.machines(),
    nodes: () => client.clusterStatus(),
    close,
    [Symbol.asyncDispose]: close,
  }
}

const connectToOwn = async ({ env = process.env, origin, signal }: ConnectOptions): Promise<Client> => {
  const home = resolveHome(env)
  const ensure = (during?: AbortSignal): Promise<void> =>
    ensureDaemon(home, { version: VERSION, env, ...(during && { signal: during }) })
  await ensure(signal)
  return connectControl(home, { origin: origin ?? 'client', version: VERSION, revive: ensure })
}

const connectToUrl = (address: string, { token, origin }: ConnectOptions): Client => {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new AppError('invalid', `Invalid URL '${address}'.`, {
      hint: 'Give the address that deputy daemon status prints, such as http://127.0.0.1:8760.',
    })
  return connectControl(
    { socket: url },
    { origin: origin ?? 'client', version: VERSION, ...(token !== undefined && { token }) },
  )
}
