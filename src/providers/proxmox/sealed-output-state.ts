import { z } from 'zod'
import type { HeldOutput } from '../../output/job-output.ts'
import type { AttachRequest, CommandSpec, Run } from '../../ports.ts'
import { seal, unseal } from './seal.ts'
import type { Details } from './vm-details.ts'

/** What is needed to process the output of a job: its secrets, its format, and bytes an earlier daemon held back. */
export interface Reading extends Pick<CommandSpec, 'secrets' | 'format'> {
  readonly held?: HeldOutput | undefined
}

export interface SealedOutputStateOptions {
  readonly run: AttachRequest
  readonly details: Details
  /** Absent after a restart; the values sealed at the start are used then. */
  readonly fresh: Run | undefined
  /** The machine's token; unknown until its first request. */
  token(): string | undefined
}

/** A longer unfinished line is not kept over a restart. */
const MOST_HELD = 4 * 1024 * 1024

/**
 * Stores what the next daemon needs to continue reading the output: the secrets as they were at the start, even if
 * their sources have changed, and the bytes that were received but held back. All of it is sealed.
 */
export const createSealedOutputState = ({ run, details, fresh, token }: SealedOutputStateOptions) => {
  const carried = details.started?.jobId === run.job.id ? (details.held ?? []) : []
  let isKept = carried.length > 0

  return {
    /** Undefined until the first request of the machine. */
    open(): Reading | undefined {
      if (fresh) return { secrets: fresh.command.secrets, format: fresh.command.format }
      const key = token()
      if (key === undefined || details.reading === undefined) return undefined
      const reading = unseal(key, details.reading, readingSchema)
      const last = carried.find(({ position }) => position === run.sink.position)
      return { ...reading, held: last && decode(unseal(key, last.sealed, heldSchema)) }
    },

    /** Details to store with the start. */
    sealed(): Partial<Details> {
      const key = token()
      if (fresh === undefined || key === undefined) return {}
      const { secrets, format } = fresh.command
      return { reading: seal(key, { secrets, format }), held: [] }
    },

    /** Details to store with the output up to this position; they are valid for this position only. */
    keep(position: number, held: HeldOutput | undefined): Partial<Details> | undefined {
      const key = token()
      const encoded = held && encode(held)
      if (key !== undefined && encoded && encoded.size <= MOST_HELD) {
        isKept = true
        return { held: [{ position, sealed: seal(key, encoded.fields) }] }
      }
      if (!isKept) return undefined
      // An older runner sends no positions: stale held-back bytes would be repeated before its next output.
      isKept = false
      return { held: [] }
    },
  }
}

const readingSchema = z.object({
  secrets: z.record(z.string(), z.string()),
  format: z.enum(['text', 'claude-stream-json']),
})

const heldSchema = z.object({ stdout: z.string(), stderr: z.string(), line: z.string() })
type EncodedHeld = z.output<typeof heldSchema>

const encode = ({ stdout, stderr, line }: HeldOutput) => ({
  size: stdout.length + stderr.length + line.length,
  fields: {
    stdout: stdout.toString('base64'),
    stderr: stderr.toString('base64'),
    line: line.toString('base64'),
  } satisfies EncodedHeld,
})

const decode = ({ stdout, stderr, line }: EncodedHeld): HeldOutput => ({
  stdout: Buffer.from(stdout, 'base64'),
  stderr: Buffer.from(stderr, 'base64'),
  line: Buffer.from(line, 'base64'),
})
