import { AppError, toAppError } from '../jobs/errors.ts'

/** Answers are built from plain header objects: the Node adapter sends those without building a Headers. */
const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const

export const json = (body: unknown, status = 200, headers?: Record<string, string>): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers },
  })

export const text = (body: string, contentType: string): Response =>
  new Response(body, { headers: { ...JSON_HEADERS, 'content-type': contentType } })

export const noContent = (): Response => new Response(null, { status: 204 })

export const errorResponse = (error: AppError, headers?: Record<string, string>): Response =>
  json({ error: error.toBody() }, error.httpStatus, { ...retryAfter(error), ...headers })

/** For what the Node adapter cannot even read as a request, such as a broken Host or a backslash in the path. */
export const badRequest = (thrown: unknown): Response =>
  thrown instanceof Error && thrown.name === 'RequestError'
    ? errorResponse(new AppError('invalid', `The request cannot be read: ${thrown.message}.`))
    : errorResponse(toAppError(thrown))

const retryAfter = (error: AppError): Record<string, string> =>
  error.httpStatus === 429 || error.httpStatus === 503 ? { 'retry-after': '1' } : {}
