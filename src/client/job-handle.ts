import { buffer, text } from 'node:stream/consumers'
import type { JobResult, JobView } from '../engine/deputy.ts'
import type { Unpacked } from '../files/unpack-received.ts'
import { AppError } from '../jobs/errors.ts'
import type { Artifact, JobEvent } from '../jobs/job.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import { isTerminal } from '../jobs/states.ts'
import type { Client } from './daemon-client.ts'
import type { Forward, ForwardOptions } from './forward-port.ts'
import type { Shell, ShellOptions } from './open-shell.ts'

/** A piece of a job's output. `skipped` counts the bytes that were dropped before it. */
export interface OutputText {
  readonly stream: 'stdout' | 'stderr'
  readonly text: string
  readonly skipped: number
}

/** One job of the daemon. It goes on whether anybody holds a handle or not. */
export interface JobHandle {
  readonly id: string
  status(signal?: AbortSignal): Promise<JobView>
  /** Resolves when the job has ended, however it ended. */
  wait(signal?: AbortSignal): Promise<JobView>
  /** Waits for the end and returns output, artifacts and how it ended. */
  result(options?: { maxBytes?: number; signal?: AbortSignal }): Promise<JobResult>
  /** Output as it is printed, to its end; survives restarts of the daemon. */
  follow(signal?: AbortSignal): AsyncIterable<OutputText>
  /** State changes, progress and warnings, to the end of the job. */
  events(signal?: AbortSignal): AsyncIterable<JobEvent>
  cancel(): Promise<JobView>
  /** Deletes the finished job with its output, artifacts and kept machine. */
  delete(): Promise<void>
  artifacts(): Promise<readonly Artifact[]>
  readArtifact(path: string, signal?: AbortSignal): Promise<Uint8Array>
  /** The changes to the workspace as a patch of git. */
  patch(signal?: AbortSignal): Promise<string>
  /** Runs another command in the machine that this job left (`lifecycle: 'persistent'`). */
  exec(manifest: string | ManifestInput, signal?: AbortSignal): Promise<JobHandle>
  /** Opens a terminal in the machine: beside the running job, or as a job of its own in the machine that it left. */
  shell(options?: ShellOptions): Promise<Shell>
  /** Copies a file or a directory of this computer into the machine; `to` is relative to the workspace. */
  upload(from: string, to: string, options?: { signal?: AbortSignal }): Promise<void>
  /** Copies a file or a directory of the machine to this computer. Existing files are replaced only with `force`. */
  download(from: string, to: string, options?: { force?: boolean; signal?: AbortSignal }): Promise<Unpacked>
  /** Brings a port of the running job to 127.0.0.1 of this computer. */
  forward(options: ForwardOptions): Promise<Forward>
}

const WAIT_MS = 25_000

export const createJobHandle = (client: Client, id: string): JobHandle => {
  const wait = async (signal: AbortSignal = new AbortController().signal): Promise<JobView> => {
    for (;;) {
      const job = await client.wait(id, { timeoutMs: WAIT_MS, signal })
      if (isTerminal(job.status)) return job
      signal.throwIfAborted()
    }
  }

  async function* follow(signal: AbortSignal = new AbortController().signal): AsyncGenerator<OutputText> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    let skipped = 0
    for await (const page of client.follow(id, { signal })) {
      for (const piece of page.pieces) {
        if ('skipped' in piece) {
          skipped += piece.skipped
          continue
        }
        const text = decoders[piece.stream].decode(piece.data, { stream: true })
        if (text === '') continue
        yield { stream: piece.stream, text, skipped }
        skipped = 0
      }
    }
  }

  const machineOf = async (signal?: AbortSignal): Promise<string> => {
    const { machine_id } = await client.get(id, signal)
    if (machine_id === null) throw new AppError('conflict', `Job ${id} has no machine.`)
    return machine_id
  }

  return {
    id,
    status: signal => client.get(id, signal),
    wait,
    result: async ({ maxBytes, signal } = {}) => {
      await wait(signal)
      return client.result(id, maxBytes === undefined ? {} : { maxBytes })
    },
    follow,
    events: (signal = new AbortController().signal) => client.followEvents({ id, signal }),
    cancel: () => client.cancel(id),
    delete: () => client.delete(id),
    artifacts: () => client.artifacts(id),
    readArtifact: async (path, signal) => buffer((await client.openArtifact(id, path, signal)).bytes),
    patch: async signal => text((await client.openPatch(id, signal)).bytes),
    exec: async (manifest, signal) => {
      const { machine_id } = await client.get(id, signal)
      const rest = typeof manifest === 'string' ? { task: manifest } : manifest
      const job = await client.submit({ ...rest, ...(machine_id && { machine: machine_id }) }, signal)
      return createJobHandle(client, job.job_id)
    },
    shell: async (options = {}) => {
      const { openShell, runInTerminal } = await import('./open-shell.ts')
      const { status, machine_id } = await client.get(id, options.signal)
      if (!isTerminal(status)) return openShell(client, id, options)
      return runInTerminal(client, { ...(machine_id && { machine: machine_id }) }, options)
    },
    upload: async (from, to, options = {}) => {
      const { uploadPath } = await import('./copy-files.ts')
      const machineId = await machineOf(options.signal)
      await uploadPath(client, { machineId, local: from, remote: to, ...options })
    },
    download: async (from, to, options = {}) => {
      const { downloadPath } = await import('./copy-files.ts')
      const machineId = await machineOf(options.signal)
      return downloadPath(client, { machineId, local: to, remote: from, ...options })
    },
    forward: async options => {
      const { forwardPort } = await import('./forward-port.ts')
      return forwardPort(client, id, options)
    },
  }
}
