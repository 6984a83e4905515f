import type { z } from 'zod'
import type { Exchange } from './guest-routes.ts'
import { json, readBody } from './http-replies.ts'
import { completePayload, statusPayload } from './protocol.ts'

const MAX_JSON = 10 * 1024 * 1024

/** Routes below /callback, for older runners; they require the token of the machine. */
export const handleCallback = async (
  { machine, request, response }: Exchange,
  [jobId = '', action]: readonly string[],
): Promise<void> => {
  const job = machine.job(jobId)
  if (request.method !== 'POST') return json(response, 404, { error: 'Not found' })
  if (job === undefined) return json(response, 404, { error: 'Job not found' })
  const body = await readBody(request, MAX_JSON)
  if (action === 'heartbeat') {
    job.heartbeat()
    return json(response, 200, { received: true })
  }
  if (action !== 'status' && action !== 'complete') return json(response, 404, { error: 'Not found' })
  const problem =
    action === 'status'
      ? await take(statusPayload, body, jobId, payload => job.status(payload))
      : await take(completePayload, body, jobId, payload => job.complete(payload))
  if (problem !== undefined) return json(response, 400, { error: 'Invalid payload', details: problem })
  json(response, 200, { received: true })
}

/** Undefined when it was taken, else what is wrong with it. */
const take = async <T extends { job_id: string }>(
  schema: z.ZodType<T>,
  body: Buffer,
  jobId: string,
  use: (payload: T) => Promise<void>,
): Promise<unknown> => {
  const parsed = schema.safeParse(parse(body))
  if (!parsed.success)
    return parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }))
  if (parsed.data.job_id !== jobId) return [{ path: 'job_id', message: 'is not the job of the address' }]
  await use(parsed.data)
  return undefined
}

const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
