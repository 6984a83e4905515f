import type { Usage } from '../../jobs/job.ts'
import { createClaudeStream } from '../../output/claude-stream.ts'
import { createProgressScanner } from '../../output/progress-scanner.ts'
import { createRedactor, createTextRedactor, secretPatterns } from '../../output/redactor.ts'
import { createLimitErrorScanner, type LimitErrorScanner } from './limit-error-scanner.ts'
import type { Spool } from './spool.ts'

export interface JobOutput {
  stdout(chunk: Buffer): void
  stderr(chunk: Buffer): void
  /** Writes the bytes held back. */
  end(): void
  /** Bytes received but not written yet; undefined when there are none. */
  held(): HeldOutput | undefined
  redact(text: string): string
  /** Limits named in error messages of the output. */
  readonly limitErrors: LimitErrorScanner
  /** Usage and error reported by an AI agent. */
  agentSummary(): { usage: Usage | null; error: string | null }
}

/** Bytes that may begin a secret, and an incomplete line of an agent. Not redacted: do not show them. */
export interface HeldOutput {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly line: Buffer
}

export interface JobOutputOptions {
  readonly spool: Spool
  readonly secrets: Readonly<Record<string, string>>
  readonly format: 'text' | 'claude-stream-json'
  /** Bytes that an earlier instance for the same job had received but not written. */
  readonly held?: HeldOutput | undefined
  now(): number
  onWrite(): void
}

/** Writes the output of a job to its log: redacts secrets, formats agent output, extracts progress. */
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
