import { z } from 'zod'

/**
 * How machines talk to the daemon. Every request carries the machine's bearer token.
 *
 *   GET  /guest/v1/work                      waits for work; 200 with an order (see order-format.ts), 204 when there is none yet
 *   POST /guest/v1/begin                     over the same connection: confirms a complete order; counts as `started`
 *                                            and answers `<job> <next offset> run|stop`, or 204 if there is no order
 *                                            or it has inputs to download
 *   GET  /guest/v1/jobs/:job/inputs/:n       a tar to unpack before the start
 *   POST /guest/v1/jobs/:job/started         the order is not sent again; answers as `output` does
 *   POST /guest/v1/jobs/:job/refused         it cannot be started, with the reason as text
 *   POST /guest/v1/jobs/:job/output          ?stream=stdout|stderr&offset=N, bytes; answers `<next offset> run|stop`
 *   POST /guest/v1/jobs/:job/heartbeat       answers `run` or `stop`
 *   POST /guest/v1/jobs/:job/files           the files of the workspace (see parseListing); answers the names of the
 *                                            files to send, each ended by NUL
 *   PUT  /guest/v1/jobs/:job/files           a tar of those; answers the names of the files to send next
 *   POST /guest/v1/jobs/:job/exit            ?code=&signal=&ended=; answers `wait` or `poweroff`
 *
 * Offsets count the bytes of both streams in the order in which they were sent. A frame that was stored but whose
 * response was lost is sent again and recognised by its offset.
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
