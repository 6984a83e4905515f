import { AppError, toAppError } from '../jobs/errors.ts'

/** Responses use plain header objects: the Node adapter sends them without building a Headers object. */
export const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

export const json = (body: unknown, status = 200, headers?: Record<string, string>): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers },
  })

/** JSON that is written as the client takes it. */
export const jsonStream = (body: ReadableStream<Uint8Array>): Response =>
  new Response(body, { headers: JSON_HEADERS })

export const text = (body: string, contentType: string): Response =>
  new Response(body, { headers: { ...JSON_HEADERS, 'content-type': contentType } })

export const noContent = (): Response => new Response(null, { status: 204 })

export const errorResponse = (error: AppError, headers?: Record<string, string>): Response =>
  json({ error: error.toBody() }, error.httpStatus, { ...retryAfter(error), ...headers })

/** For requests that the Node adapter cannot parse, such as an invalid Host or a backslash in the path. */
export const badRequest = (thrown: unknown): Response =>
  thrown instanceof Error && thrown.name === 'RequestError'
    ? errorResponse(new AppError('invalid', `Invalid request: ${thrown.message}.`))
    : errorResponse(toAppError(thrown))

const retryAfter = (error: AppError): Record<string, string> =>
  error.httpStatus === 429 || error.httpStatus === 503 ? { 'retry-after': '1' } : {}
