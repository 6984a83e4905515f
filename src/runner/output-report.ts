import type { OutputStream, Usage } from '../jobs/job.ts'
import { createOutputBatch } from '../output/output-batch.ts'
import type { Sink } from '../ports.ts'
import type { RunContext } from './sealed-context.ts'

export interface OutputReport {
  /** `at`: when it was printed, in milliseconds since 1970, if the runner knows. */
  push(stream: OutputStream, data: Buffer, at?: number): void
  progress(text: string): void
  /** Bytes that the runner has not kept: a gap in the offsets. */
  skip(bytes: number): void
  /** Pending while too much waits to be written. */
  ready(): Promise<void> | undefined
  /** Writes the rest; rejects when the sink did. */
  end(): Promise<void>
  agent(): { usage: Usage | null; error: string | null }
  redact(text: string): string
}

const MANY_BYTES = 512 * 1024
/** Write anyway when a stream keeps ending in what might be the beginning of a secret. */
const HELD_BYTES = 256 * 1024

/**
 * Writes the output of a run to the sink: redacted, with its progress lines. The position moves only when no bytes are
 * held back, so a restarted daemon asks again for exactly the bytes that were not written.
 */
export const createOutputReport = ({
  sink,
  context,
  ...options
}: {
  sink: Sink
  /** Null when the runner redacts and formats the output itself. */
  context: Pick<RunContext, 'secrets' | 'format'> | null
  outputBytes: number
}): OutputReport => {
  let printedAt: number | undefined
  const batch = createOutputBatch({
    ...options,
    sink,
    secrets: context?.secrets ?? [],
    format: context?.format ?? 'text',
    now: () => printedAt ?? Date.now(),
  })
  const { output } = batch
  let writing: Promise<void> | undefined
  let failure: unknown
  const waiters: (() => void)[] = []

  const write = async (): Promise<void> => {
    // Frames that arrived together are written together.
    await null
    while (batch.hasNews && failure === undefined) {
      await sink.write(batch.take()).catch(error => {
        failure = error
      })
      for (const wake of waiters.splice(0)) wake()
      if (output.holding) break
    }
    writing = undefined
  }

  const flush = (): void => {
    if (writing === undefined && (!output.holding || batch.pendingBytes > HELD_BYTES)) writing = write()
  }

  return {
    push: (stream, data, at) => {
      printedAt = at
      batch.advance(data.length)
      if (context === null) batch.add(stream, data)
      else output[stream](data)
      flush()
    },
    progress: text => {
      batch.setProgress(text)
      flush()
    },
    skip: bytes => {
      batch.skip(bytes)
      flush()
    },
    ready: () =>
      batch.pendingBytes < MANY_BYTES || failure !== undefined
        ? undefined
        : new Promise(resolve => waiters.push(resolve)),
    end: async () => {
      await writing
      output.end()
      writing = write()
      await writing
      if (failure !== undefined) throw failure
    },
    redact: output.redact,
    agent: output.agentSummary,
  }
}
