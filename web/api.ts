import { signal } from '@preact/signals'
import type { ErrorBody } from '../src/jobs/errors.ts'
import { readEvents, type StreamEvent } from './server-events.ts'
import { dropSession, session } from './session.ts'

/** Whether the daemon answers; streams and calls keep it up to date. */
export const isConnected = signal(true)

export class ApiError extends Error {
  readonly status: number
  readonly hint: string | undefined
  readonly details: unknown

  constructor(status: number, { message, hint, details }: Pick<ErrorBody, 'message' | 'hint' | 'details'>) {
    super(message)
    this.status = status
    this.hint = hint
    this.details = details
  }
}

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

export const ask = async (path: string, options: Ask = {}): Promise<Response> => {
  const { method = 'GET', body, headers, signal } = options
  const response = await send(path, {
    method,
    headers: {
      authorization: `Bearer ${session.value ?? ''}`,
      'x-deputy-origin': 'console',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    cache: 'no-store',
  })
  isConnected.value = true
  if (response.ok) return response
  const error = await errorOf(response)
  if (error.status === 401) dropSession('The session has ended.')
  throw error
}

const send = async (path: string, init: RequestInit): Promise<Response> => {
  try {
    return await fetch(path, init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    isConnected.value = false
    throw new ApiError(503, { message: 'The daemon does not answer.', hint: 'deputy daemon status' })
  }
}

export const askJson = async <T>(path: string, options?: Ask): Promise<T> => (await ask(path, options)).json()

const errorOf = async (response: Response): Promise<ApiError> => {
  try {
    const { error } = await response.json()
    return new ApiError(response.status, error)
  } catch {
    return new ApiError(response.status, { message: `The daemon answered ${response.status}.` })
  }
}

const RETRY_MS = 1000

/** Follows a stream over cut connections and restarts of the daemon, from where it was. Ends with its `end`. */
export async function* follow(path: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  let last = ''
  while (!signal.aborted) {
    try {
      const response = await ask(path, { signal, headers: last === '' ? {} : { 'last-event-id': last } })
      if (response.status === 204 || response.body === null) return
      for await (const event of readEvents(response.body)) {
        if (event.id !== '') last = event.id
        yield event
        if (event.event === 'end') return
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && error.status < 500) throw error
    }
    isConnected.value = false
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
}

/** A link cannot send the session; so the file comes by fetch and is handed over as a blob. */
export const download = async (path: string, name: string): Promise<void> => {
  const url = URL.createObjectURL(await (await ask(path)).blob())
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

export const artifactPath = (jobId: string, path: string): string =>
  `/api/jobs/${jobId}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`
