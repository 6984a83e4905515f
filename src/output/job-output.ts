import type { OutputStream, Usage } from '../jobs/job.ts'
import { createClaudeStream } from './claude-stream.ts'
import { createLimitErrorScanner, type LimitErrorScanner } from './limit-error-scanner.ts'
import { createProgressScanner } from './progress-scanner.ts'
import { createRedactor, createTextRedactor, secretPatterns } from './redactor.ts'

export interface JobOutput {
  stdout(chunk: Buffer): void
  stderr(chunk: Buffer): void
  /** Writes the bytes that are held back because they may be the beginning of a secret. */
  flush(): void
  /** Writes all bytes held back, the incomplete line of an agent included. */
  end(): void
  /** True if bytes are held back: they may be the beginning of a secret, or the incomplete line of an agent. */
  readonly holding: boolean
  /** Bytes received but not written yet; undefined when there are none. */
  held(): HeldOutput | undefined
  redact(text: string): string
  /** Limits named in error messages of the output. */
  readonly limitErrors: LimitErrorScanner
  /** Usage and error reported by an AI agent. */
  agentSummary(): { usage: Usage | null; error: string | null }
}

/** Bytes that may be the beginning of a secret, and an incomplete line of an agent. Not redacted: do not show them. */
export interface HeldOutput {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly line: Buffer
}

export interface JobOutputOptions {
  readonly secrets: readonly string[]
  readonly format: 'text' | 'claude-stream-json'
  /** Bytes that an earlier instance for the same job had received but not written. */
  readonly held?: HeldOutput | undefined
  write(kind: OutputStream | 'progress', data: Buffer): void
}

/** Processes the output of a job: redacts secrets, formats agent output, extracts progress. */
export const createJobOutput = ({ secrets, format, held, write }: JobOutputOptions): JobOutput => {
  const patterns = secretPatterns(secrets)
  const redact = createTextRedactor(patterns)
  const limitErrors = createLimitErrorScanner()

  const progress = (text: string) => {
    write('progress', Buffer.from(redact(text)))
  }

  const createStream = (kind: OutputStream) => {
    const redactor = createRedactor(patterns)
    const scan = createProgressScanner(progress)
    const forward = (data: Buffer) => {
      if (data.length === 0) return
      limitErrors.scan(data)
      write(kind, data)
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

  const out = createStream('stdout')
  const err = createStream('stderr')
  const agent =
    format === 'claude-stream-json'
      ? createClaudeStream({ onText: text => out.push(Buffer.from(text)), onProgress: progress, redact })
      : null

  const flush = (): void => {
    out.flush()
    err.flush()
  }

  if (held !== undefined) {
    out.push(held.stdout)
    err.push(held.stderr)
    agent?.push(held.line)
  }

  return {
    stdout: chunk => (agent === null ? out.push(chunk) : agent.push(chunk)),
    stderr: chunk => err.push(chunk),
    flush,
    end: () => {
      agent?.end()
      flush()
    },
    get holding() {
      return out.redactor.holding || err.redactor.holding || (agent?.holding ?? false)
    },
    held() {
      if (!this.holding) return undefined
      return {
        stdout: out.redactor.held(),
        stderr: err.redactor.held(),
        line: agent?.held() ?? Buffer.alloc(0),
      }
    },
    redact,
    limitErrors,
    agentSummary: () => {
      const summary = agent?.summary() ?? { usage: null, error: null }
      return { usage: summary.usage, error: summary.error === null ? null : redact(summary.error) }
    },
  }
}
