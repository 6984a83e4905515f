import { z } from 'zod'
import { isSafePath } from '../jobs/paths.ts'

/**
 * How machines talk to the daemon. Every request carries the machine's bearer token.
 *
 *   GET  /guest/v1/work                      waits for work; 200 with an order (see order-format.ts), 204 when there is none yet
 *   POST /guest/v1/begin                     over the same connection: the order has arrived whole and is being carried
 *                                            out; counts as `started` and answers `<job> <next offset> run|stop`, or
 *                                            204 when there is none or more has to be fetched for it first
 *   GET  /guest/v1/jobs/:job/inputs/:n       a tar to unpack before the start
 *   POST /guest/v1/jobs/:job/started         from here on the order is not handed out again; answers as `output` does
 *   POST /guest/v1/jobs/:job/refused         it cannot be started, with the reason as text
 *   POST /guest/v1/jobs/:job/output          ?stream=stdout|stderr&offset=N, bytes; answers `<next offset> run|stop`
 *   POST /guest/v1/jobs/:job/heartbeat       answers `run` or `stop`
 *   POST /guest/v1/jobs/:job/files           what is in the workspace (see parseFileList); answers the names of files that
 *                                            are wanted, each ended by NUL; none when nothing is
 *   PUT  /guest/v1/jobs/:job/files           a tar of those; answers the names that are wanted next
 *   POST /guest/v1/jobs/:job/exit            ?code=&signal=&ended=; answers `wait` or `poweroff`
 *
 * Offsets count the bytes of both streams in the order in which they were sent. A frame that was stored but whose
 * answer was lost comes again and is recognised by its offset.
 *
 * The routes below /callback/ and /health have the shapes of older runners.
 */
export const outputQuery = z.object({
  stream: z.enum(['stdout', 'stderr']),
  offset: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
})

export const exitQuery = z.object({
  code: z.coerce.number().int().min(0).max(255),
  signal: z.coerce.number().int().min(0).max(127),
  ended: z.enum(['', 'timeout', 'stopped']).default(''),
})

export type ExitReport = z.output<typeof exitQuery>

export const completePayload = z.object({
  job_id: z.uuid(),
  status: z.enum(['success', 'failed']),
  exit_code: z.number(),
  output: z.string(),
  artifacts: z.array(z.unknown()).optional(),
  duration_seconds: z.number(),
  error: z.string().optional(),
})

export const statusPayload = z.object({
  job_id: z.uuid(),
  progress: z.string(),
  output: z.string().optional(),
})

export type CompletePayload = z.output<typeof completePayload>
export type StatusPayload = z.output<typeof statusPayload>

export interface ListedFile {
  /** Relative to the workspace. */
  readonly path: string
  readonly type: 'file' | 'link' | 'other'
  readonly size: number
  readonly mode: number
  /** When it was changed last, in whole seconds. */
  readonly modified: number
}

export interface FileList {
  readonly files: readonly ListedFile[]
  /** Set when the list is not the whole of it. */
  readonly truncated: boolean
  /** How many have names that are no UTF-8. */
  readonly unnamed: number
}

const TYPES: Readonly<Record<string, ListedFile['type']>> = { f: 'file', l: 'link' }
const RECORD = /^([a-zA-Z]) (\d{1,15}) ([0-7]{1,5}) (-?\d{1,15})(?:\.\d*)? (.+)$/s
const MAX_FILES = 200_000

/**
 * Everything but directories, as `find -printf '%y %s %m %T@ %P\0'` writes it. An empty record is the end: a list
 * without it was cut, or is not complete for another reason.
 */
export const parseFileList = (bytes: Buffer): FileList => {
  const files: ListedFile[] = []
  let unnamed = 0
  let from = 0
  for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
    if (end === from) return { files, truncated: false, unnamed }
    const record = bytes.toString('utf8', from, end)
    from = end + 1
    if (record.includes('\ufffd')) unnamed++
    else if (files.length === MAX_FILES) break
    else {
      const file = parseRecord(record)
      if (file !== undefined) files.push(file)
    }
  }
  return { files, truncated: true, unnamed }
}

const parseRecord = (record: string): ListedFile | undefined => {
  const [, type, size, mode, modified, path] = RECORD.exec(record) ?? []
  if (path === undefined || !isSafePath(path)) return undefined
  return {
    path,
    type: TYPES[type!] ?? 'other',
    size: Number(size),
    mode: Number.parseInt(mode!, 8),
    modified: Number(modified),
  }
}

/** For `xargs -0`; led by a dot, so that no name is an option. */
export const encodeNames = (paths: readonly string[]): string => paths.map(path => `./${path}\0`).join('')
