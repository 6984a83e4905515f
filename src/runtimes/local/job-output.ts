import type { Usage } from '../../jobs/job.ts'
import { createClaudeStream } from './claude-stream.ts'
import { createLimitErrorScanner, type LimitErrorScanner } from './limit-error-scanner.ts'
import { createProgressScanner } from './progress-scanner.ts'
import { createRedactor, createTextRedactor, secretPatterns } from './redactor.ts'
import type { Spool } from './spool.ts'

export interface JobOutput {
  stdout(chunk: Buffer): void
  stderr(chunk: Buffer): void
  /** Writes what was held back. */
  end(): void
  /** What was taken but not written yet; undefined when there is nothing of that kind. */
  held(): HeldOutput | undefined
  redact(text: string): string
  /** What the output itself tells about limits. */
  readonly limitErrors: LimitErrorScanner
  /** What an AI agent told about itself. */
  agentSummary(): { usage: Usage | null; error: string | null }
}

/** Beginnings of what may be secrets, and of a line of an agent. Not fit to be seen. */
export interface HeldOutput {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly line: Buffer
}

export interface JobOutputOptions {
  readonly spool: Spool
  readonly secrets: Readonly<Record<string, string>>
  readonly format: 'text' | 'claude-stream-json'
  /** What an earlier one of the same job had taken but not written. */
  readonly held?: HeldOutput | undefined
  now(): number
  onWrite(): void
}

/** From the pipes of a job to its log: readable, without secrets, progress marked. */
export const createJobOutput = ({
  spool,
  secrets,
  format,
  held,
  now,
  onWrite,
}: JobOutputOptions): JobOutput => {
  const patterns = secretPatterns(Object.values(secrets))
  const redact = createTextRedactor(patterns)
  const limitErrors = createLimitErrorScanner()

  const progress = (text: string) => {
    spool.write('progress', Buffer.from(redact(text)), now())
  }

  const createStream = (kind: 'stdout' | 'stderr') => {
    const redactor = createRedactor(patterns)
    const scan = createProgressScanner(progress)
    const write = (data: Buffer) => {
      if (data.length === 0) return
      limitErrors.scan(data)
      spool.write(kind, data, now())
      scan(data)
      onWrite()
    }
    return {
      push: (chunk: Buffer) => write(redactor.push(chunk)),
      held: () => redactor.held(),
      flush: () => {
        write(redactor.flush())
        scan(Buffer.from('\n'))
      },
    }
  }

  const out = createStream('stdout')
  const err = createStream('stderr')
  const agent =
    format === 'claude-stream-json'
      ? createClaudeStream({ onText: text => out.push(Buffer.from(text)), onProgress: progress, redact })
      : null

  if (held !== undefined) {
    out.push(held.stdout)
    err.push(held.stderr)
    agent?.push(held.line)
  }

  return {
    stdout: chunk => (agent === null ? out.push(chunk) : agent.push(chunk)),
    stderr: chunk => err.push(chunk),
    end: () => {
      agent?.end()
      out.flush()
      err.flush()
    },
    held: () => {
      const now = { stdout: out.held(), stderr: err.held(), line: agent?.held() ?? Buffer.alloc(0) }
      return now.stdout.length + now.stderr.length + now.line.length === 0 ? undefined : now
    },
    redact,
    limitErrors,
    agentSummary: () => {
      const summary = agent?.summary() ?? { usage: null, error: null }
      return { usage: summary.usage, error: summary.error === null ? null : redact(summary.error) }
    },
  }
}
