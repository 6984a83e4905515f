import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import {
  type Answer,
  answerSchema,
  fromWords,
  OLDEST,
  type Request,
  requestSchema,
  toWords,
  VERSION,
} from './frames.ts'
import { quoteIfNeeded, splitWords } from './shell-words.ts'

/** The request as a line; arguments and variables may contain newlines, inside quotes. */
export const encodeRequest = (request: Request): string => {
  const wire = z.safeEncode(requestSchema, request)
  if (!wire.success)
    throw new AppError('invalid', `The ${request.kind} request cannot be sent: ${sentence(wire.error)}.`)
  return `${toWords(wire.data).map(quoteIfNeeded).join(' ')}\n`
}

export const encodeAnswer = (answer: Answer): string =>
  `${toWords(z.encode(answerSchema, answer)).map(quoteIfNeeded).join(' ')}\n`

const sentence = (error: z.ZodError): string =>
  error.issues.map(({ path, message }) => `${path.join('.') || 'frame'}: ${message}`).join('; ')

type Fields = ReturnType<typeof fromWords>

/** Undefined for a kind that this side does not know: a newer peer may send it. */
export const parseRequest = (fields: Fields): Request | undefined =>
  isKnown(requestSchema, fields) ? requestSchema.parse(fields) : undefined

export const parseAnswer = (fields: Fields): Answer | undefined =>
  isKnown(answerSchema, fields) ? answerSchema.parse(fields) : undefined

const isKnown = (schema: typeof requestSchema | typeof answerSchema, { kind }: Fields): boolean =>
  schema.options.some(option => option.shape.kind.value === kind)

export interface FrameReaderOptions<F> {
  parse(fields: Fields): F | undefined
  /** Skips everything before the `hello` with this mark: a login shell may print before the runner starts. */
  readonly mark?: string
  /** Called for each frame, and once more for every further piece of its raw bytes. */
  onFrame(frame: F, data: Buffer): void
}

const MAX_HEADER = 16 * 1024 * 1024
const QUOTE = 39
const NEWLINE = 10
const BACKSLASH = 92
const NOTHING = Buffer.alloc(0)

/** Splits a stream of bytes into frames. Throws on a frame that it cannot read: nothing after it can be trusted. */
export const createFrameReader = <F extends Request | Answer>(
  options: FrameReaderOptions<F>,
): ((chunk: Buffer) => void) => {
  let rest: Buffer = NOTHING
  let scanned = 0
  let quoted = false
  let greeted = options.mark === undefined
  let body: { frame: F | undefined; left: number } | undefined

  /** Returns the index of the end of the line, or -1 if it has not arrived yet. */
  const lineEnd = (): number => {
    if (!greeted) return rest.indexOf(NEWLINE)
    for (; scanned < rest.length; scanned++) {
      const byte = rest[scanned]
      if (byte === QUOTE) quoted = !quoted
      else if (quoted) continue
      else if (byte === BACKSLASH) scanned++
      else if (byte === NEWLINE) return scanned
    }
    return -1
  }

  const takeBody = (): void => {
    const { frame, left } = body!
    const data = rest.subarray(0, left)
    rest = rest.subarray(data.length)
    body =
      data.length < left
        ? { frame: frame && advanced(frame, data.length), left: left - data.length }
        : undefined
    if (frame) options.onFrame(frame, data)
  }

  const takeLine = (line: string): void => {
    if (!greeted) {
      const at = line.lastIndexOf('hello version=')
      if (at < 0 || !line.includes(` mark=${options.mark}`)) return
      greeted = true
      line = line.slice(at)
    }
    const words = splitWords(line)
    if (words?.length === 0) return
    const fields = words && fromWords(words)
    if (fields === undefined) throw unreadable(line)
    const frame = parsed(line, () => options.parse(fields))
    const bytes = fields.bytes === 'rest' ? Number.POSITIVE_INFINITY : Number(fields.bytes ?? 0)
    if (bytes > 0) body = { frame, left: bytes }
    else if (frame) options.onFrame(frame, NOTHING)
  }

  return chunk => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (rest.length > 0) {
      if (body) {
        takeBody()
        continue
      }
      const end = lineEnd()
      if (end < 0) {
        if (rest.length > MAX_HEADER) throw unreadable('(too long)')
        return
      }
      const line = rest.subarray(0, end).toString('utf8')
      rest = rest.subarray(end + 1)
      scanned = 0
      takeLine(line)
    }
  }
}

const parsed = <F>(line: string, parse: () => F | undefined): F | undefined => {
  try {
    return parse()
  } catch (cause) {
    throw unreadable(line, cause)
  }
}

/** The offset of the next piece of an output frame. */
const advanced = <F extends Request | Answer>(frame: F, bytes: number): F =>
  frame.kind === 'output' ? { ...frame, offset: frame.offset + bytes } : frame

const unreadable = (line: string, cause?: unknown): AppError =>
  new AppError('unavailable', `The runner sent a frame that cannot be read: ${line.slice(0, 200)}`, {
    retryable: false,
    cause,
  })

/** Why two versions cannot work together; undefined when they can. */
export const versionProblem = (
  theirs: { version: number; oldest: number },
  { their = 'runner', our = 'daemon' } = {},
): string | undefined => {
  if (theirs.version >= OLDEST && theirs.oldest <= VERSION) return undefined
  const newer = theirs.oldest > VERSION
  return `The ${their} speaks version ${theirs.version} of the runner protocol, this ${our} version ${VERSION}: upgrade the ${newer ? our : their}.`
}
