import type { OutputChunk, Usage } from '../jobs/job.ts'
import { createClaudeStream } from '../output/claude-stream.ts'
import { createProgressScanner } from '../output/progress-scanner.ts'
import { createRedactor, createTextRedactor, secretPatterns } from '../output/redactor.ts'
import type { Sink } from '../ports.ts'
import type { RunContext } from './sealed-context.ts'

export interface OutputReport {
  push(stream: 'stdout' | 'stderr', data: Buffer): void
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
export const createOutputReport = (options: {
  sink: Sink
  context: Pick<RunContext, 'secrets' | 'format'>
  outputBytes: number
  now(): number
}): OutputReport => {
  const { sink, now } = options
  const patterns = secretPatterns(options.context.secrets)
  const redact = createTextRedactor(patterns)
  let position = sink.position
  let offset = options.outputBytes
  let pending: OutputChunk[] = []
  let pendingBytes = 0
  let progress: string | undefined
  let lineOpen = false
  let skipped = false
  let writing: Promise<void> | undefined
  let failure: unknown
  const waiters: (() => void)[] = []

  const put = (stream: 'stdout' | 'stderr', data: Buffer): void => {
    if (data.length === 0) return
    const last = pending.at(-1)
    const joins = last?.stream === stream && last.offset + last.data.length === offset
    if (joins && last.data.length + data.length < MANY_BYTES) {
      pending[pending.length - 1] = { ...last, data: Buffer.concat([last.data, data]) }
    } else pending.push({ stream, offset, data, at: now() })
    offset += data.length
    pendingBytes += data.length
  }

  const onProgress = (text: string): void => {
    progress = redact(text)
  }

  const lane = (stream: 'stdout' | 'stderr') => {
    const redactor = createRedactor(patterns)
    const scan = createProgressScanner(onProgress)
    const forward = (data: Buffer): void => {
      put(stream, data)
      scan(data)
    }
    return {
      redactor,
      push: (chunk: Buffer) => forward(redactor.push(chunk)),
      flush: () => {
        forward(redactor.flush())
        scan(Buffer.from('\n'))
      },
    }
  }

  const lanes = { stdout: lane('stdout'), stderr: lane('stderr') }
  const agent =
    options.context.format === 'claude-stream-json'
      ? createClaudeStream({ onText: text => lanes.stdout.push(Buffer.from(text)), onProgress, redact })
      : undefined

  const isClean = (): boolean => !lanes.stdout.redactor.holding && !lanes.stderr.redactor.holding && !lineOpen

  const write = async (): Promise<void> => {
    while ((pending.length > 0 || progress !== undefined || skipped) && failure === undefined) {
      skipped = false
      const batch = {
        position,
        chunks: pending,
        outputBytes: offset,
        ...(progress !== undefined && { progress }),
      }
      pending = []
      pendingBytes = 0
      progress = undefined
      await sink.write(batch).catch(error => {
        failure = error
      })
      for (const wake of waiters.splice(0)) wake()
      if (!isClean()) break
    }
    writing = undefined
  }

  const flush = (): void => {
    if (writing === undefined && (isClean() || pendingBytes > HELD_BYTES)) writing = write()
  }

  return {
    push: (stream, data) => {
      position += data.length
      if (stream === 'stdout' && agent) {
        lineOpen = data.at(-1) !== 10
        agent.push(data)
      } else lanes[stream].push(data)
      flush()
    },
    skip: bytes => {
      // The beginning of a secret cannot be completed across a gap.
      lanes.stdout.flush()
      lanes.stderr.flush()
      position += bytes
      offset += bytes
      skipped = true
      flush()
    },
    ready: () =>
      pendingBytes < MANY_BYTES || failure !== undefined
        ? undefined
        : new Promise(resolve => waiters.push(resolve)),
    end: async () => {
      await writing
      agent?.end()
      lanes.stdout.flush()
      lanes.stderr.flush()
      lineOpen = false
      writing = write()
      await writing
      if (failure !== undefined) throw failure
    },
    redact,
    agent: () => {
      const told = agent?.summary() ?? { usage: null, error: null }
      return { usage: told.usage, error: told.error === null ? null : redact(told.error) }
    },
  }
}
