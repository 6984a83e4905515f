import { isGzip } from '../../files/is-gzip.ts'
import { filesTar } from '../../files/pack-files.ts'
import type { JobHandler, Order } from '../../guest/machine-handler.ts'
import type { Unpacking } from '../../guest/order-format.ts'
import type { CompletePayload, ExitReport } from '../../guest/protocol.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import type { AttachRequest, Blobs } from '../../ports.ts'
import type { OutputReceiver, RunnerText } from './output-receiver.ts'
import type { CollectedFiles, Details, Finished } from './vm-details.ts'

export interface JobHandlerOptions {
  readonly run: AttachRequest
  readonly outputReceiver: OutputReceiver
  readonly blobs: Blobs
  readonly files: Pick<JobHandler, 'files' | 'receive'>
  /** The files that have arrived so far. */
  collected(): CollectedFiles
  /** Whether the machine waits for more work after this job. */
  readonly outlivesJob: boolean
  now(): number
  /** Further details to store with the start. */
  withStart(): Partial<Details>
  /** Called for each chunk of an input that is sent. */
  onInput?(): void
  /** Called when the machine receives the stop request. */
  onStopSent?(): void
  onStarted(at: number): void
  onFinished(finished: Finished): void
  onRefused(reason: string): void
}

/** Handles the requests for one job. Every response is sent after the change is durable. */
export const createJobHandler = ({
  run,
  outputReceiver,
  blobs,
  files,
  collected,
  outlivesJob,
  now,
  withStart,
  onInput = () => {},
  onStopSent = () => {},
  onStarted,
  onFinished,
  onRefused,
}: JobHandlerOptions): JobHandler => {
  let finishing: Promise<void> | undefined
  let beginning: Promise<void> | undefined

  const order = (): Order => {
    if (!run.stop.aborted) return 'run'
    onStopSent()
    return 'stop'
  }

  /** The first report counts; repeated reports get the same answer. The last output is stored in the same write. */
  const finish = (report: ExitReport, last?: RunnerText): Promise<void> => {
    finishing ??= (async () => {
      const finished: Finished = {
        jobId: run.job.id,
        report,
        endedAt: now(),
        ...collected(),
      }
      await outputReceiver.end(last, { finished })
      onFinished(finished)
    })()
    // If the write fails, the machine sends the report again.
    finishing.catch(() => {
      finishing = undefined
    })
    return finishing
  }

  /** Records the start once, even if the machine reports it repeatedly. */
  const begin = (): Promise<void> => {
    beginning ??= (async () => {
      const at = now()
      await run.remember({ started: { jobId: run.job.id, at }, ...withStart() })
      await run.sink.started(at)
      run.sink.heartbeat()
      onStarted(at)
    })()
    beginning.catch(() => {
      beginning = undefined
    })
    return beginning
  }

  return {
    started: async () => {
      await begin()
      return { next: outputReceiver.position, order: order() }
    },
    refused: async reason => {
      await beginning
      onRefused(reason)
    },
    // Output after the final report is acknowledged and dropped.
    output: async frame => ({
      next: finishing ? outputReceiver.position : await outputReceiver.take(frame),
      order: order(),
    }),
    heartbeat: () => {
      run.sink.heartbeat()
      return order()
    },
    input: index => {
      const input = inputsOf(run.manifest, blobs)[index]
      return input && watched(input.content(), onInput)
    },
    ...files,
    exit: async report => {
      await finish(report)
      return outlivesJob ? 'wait' : 'poweroff'
    },
    status: async payload => {
      if (finishing === undefined)
        await outputReceiver.takeText({ progress: payload.progress, output: payload.output })
    },
    complete: async payload => {
      await begin()
      const { output, error } = payload
      await finish({ code: codeOf(payload), signal: 0, ended: '' }, { output, error })
    },
  }
}

/** A runner that reports `failed` with exit code 0 counts as exit code 1. */
const codeOf = ({ status, exit_code }: CompletePayload): number => {
  const code = Number.isInteger(exit_code) && exit_code >= 0 && exit_code <= 255 ? exit_code : 255
  return status === 'failed' && code === 0 ? 1 : code
}

async function* watched(source: AsyncIterable<Uint8Array>, onBytes: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    onBytes()
    yield chunk
  }
}

export interface Input {
  readonly into: Unpacking
  content(): AsyncIterable<Uint8Array>
}

/** The workspace first, then the single files over it. */
export const inputsOf = (manifest: Manifest, blobs: Blobs): Input[] => {
  const blob = manifest.workspace?.blob
  const files = manifest.files ?? []
  return [
    ...(blob === undefined ? [] : [{ into: unpackingOf(blobs.path(blob)), content: () => blobs.read(blob) }]),
    ...(files.length === 0 ? [] : [{ into: 'root' as const, content: () => filesTar(files, 'root') }]),
  ]
}

const unpackingOf = (path: string): Unpacking => (isGzip(path) ? 'workspace.gz' : 'workspace')
