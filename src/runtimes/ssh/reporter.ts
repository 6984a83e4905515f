import type { OutputChunk, Usage } from '../../jobs/job.ts'
import type { Sink } from '../../ports.ts'
import { createClaudeStream } from '../local/claude-stream.ts'
import { createProgressScanner } from '../local/progress-scanner.ts'
import { createRedactor, createTextRedactor, secretPatterns } from '../local/redactor.ts'
import type { Memo } from './memo.ts'

export interface Reporter {
  push(stream: 'stdout' | 'stderr', data: Buffer): void
  /** Bytes that nobody has kept: a gap in the offsets. */
  skip(bytes: number): void
  /** A promise while more is waiting than should be. */
  ready(): Promise<void> | undefined
  /** Writes the rest; rejects when the sink did. */
  end(): Promise<void>
  agent(): { usage: Usage | null; error: string | null }
  redact(text: string): string
}

const MANY_BYTES = 512 * 1024
/** A stream that always ends in what might be a secret is acknowledged all the same. */
const HELD_BYTES = 256 * 1024

/**
 * From what a node sends to the sink: without secrets, progress marked. The position only moves when nothing is held
 * back, so that what a restarted daemon asks for again is exactly what was never written.
 */
export const createReporter = (options: {
  sink: Sink
  memo: Pick<Memo, 'secrets' | 'format'>
  outputBytes: number
  now(): number
}): Reporter => {
  const { sink, now } = options
  const patterns = secretPatterns(options.memo.secrets)
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
    options.memo.format === 'claude-stream-json'
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
      // What might have become a secret does not any more.
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
