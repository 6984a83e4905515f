import type { AttachRequest, CommandSpec, Run } from '../../ports.ts'
import type { HeldOutput } from '../local/job-output.ts'
import type { Details } from './machine-details.ts'
import { seal, unseal } from './seal.ts'

/** How the output of a job is read: what must not be seen of it, its form, and what an earlier daemon had begun. */
export interface Reading extends Pick<CommandSpec, 'secrets' | 'format'> {
  readonly held?: HeldOutput | undefined
}

export interface SealedOutputStateOptions {
  readonly run: AttachRequest
  readonly details: Details
  /** Absent after a restart: then it is what was sealed at the start. */
  readonly fresh: Run | undefined
  /** The machine's token; unknown until the machine has spoken. */
  token(): string | undefined
}

/** An unfinished line of an agent may be large; one beyond this is not carried over a restart. */
const MOST_HELD = 4 * 1024 * 1024

/**
 * Keeps with the machine what the next daemon needs to read on: the secrets as they were at the start, whatever has
 * become of their sources, and the bytes that were taken but held back. All of it is sealed.
 */
export const createSealedOutputState = ({ run, details, fresh, token }: SealedOutputStateOptions) => {
  const carried = details.started?.jobId === run.job.id ? (details.held ?? []) : []
  let isKept = carried.length > 0

  return {
    /** Undefined until the machine has spoken. */
    open(): Reading | undefined {
      if (fresh) return { secrets: fresh.command.secrets, format: fresh.command.format }
      const key = token()
      if (key === undefined || details.reading === undefined) return undefined
      const reading = unseal(key, details.reading) as Reading
      const last = carried.find(({ position }) => position === run.sink.position)
      return { ...reading, held: last && decode(unseal(key, last.sealed) as EncodedHeld) }
    },

    /** To be remembered together with the start. */
    sealed(): Partial<Details> {
      const key = token()
      if (fresh === undefined || key === undefined) return {}
      const { secrets, format } = fresh.command
      return { reading: seal(key, { secrets, format }), held: [] }
    },

    /** To be remembered together with the output up to this position: it counts for no other. */
    keep(position: number, held: HeldOutput | undefined): Partial<Details> | undefined {
      const key = token()
      const encoded = held && encode(held)
      if (key !== undefined && encoded && encoded.size <= MOST_HELD) {
        isKept = true
        return { held: [{ position, sealed: seal(key, encoded.fields) }] }
      }
      if (!isKept) return undefined
      // A runner of the older kind has no positions: what it sent after this would be led by it once more.
      isKept = false
      return { held: [] }
    },
  }
}

interface EncodedHeld {
  readonly stdout: string
  readonly stderr: string
  readonly line: string
}

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
