import { z } from 'zod'

/**
 * How machines talk to the daemon. Every request carries the machine's bearer token.
 *
 *   GET  /guest/v1/work                      waits for work; 200 with an order (see spec.ts), 204 when there is none yet
 *   GET  /guest/v1/jobs/:job/inputs/:n       a tar to unpack before the start
 *   POST /guest/v1/jobs/:job/started         from here on the order is not handed out again; answers as `output` does
 *   POST /guest/v1/jobs/:job/refused         it cannot be started, with the reason as text
 *   POST /guest/v1/jobs/:job/output          ?stream=stdout|stderr&offset=N, bytes; answers `<next offset> run|stop`
 *   POST /guest/v1/jobs/:job/heartbeat       answers `run` or `stop`
 *   POST /guest/v1/jobs/:job/files           NUL-separated `<type> <size> <path>`; answers the wanted ones, base64url by line
 *   PUT  /guest/v1/jobs/:job/artifacts/:path the content of one
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
  readonly type: 'file' | 'link' | 'other'
  readonly size: number
  readonly path: string
}

const TYPES: Readonly<Record<string, ListedFile['type']>> = { f: 'file', l: 'link' }

/** The list of a workspace as `find` wrote it; without `-printf` it has paths only. */
export const parseFileList = (bytes: Buffer): ListedFile[] =>
  bytes
    .toString('utf8')
    .split('\0')
    // A name that is no UTF-8 cannot be told apart from another such name.
    .filter(entry => entry !== '' && !entry.includes('\ufffd'))
    .map(entry => {
      const match = /^([a-zA-Z]) (\d+) ([\s\S]+)$/.exec(entry)
      if (!match) return { type: 'file', size: 0, path: entry.replace(/^\.\//, '') }
      return { type: TYPES[match[1]!] ?? 'other', size: Number(match[2]), path: match[3]! }
    })

export const encodePath = (path: string): string =>
  Buffer.from(path).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
export const decodePath = (text: string): string => Buffer.from(text, 'base64url').toString('utf8')
