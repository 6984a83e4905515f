import { readEvents, type StreamEvent } from './events.ts'

/** The token stays in this tab: unlike a cookie it is sent to no other server, not even on another port. */
const KEY = 'deputy-token'

export const saveToken = (token: string): void => sessionStorage.setItem(KEY, token)
export const forgetToken = (): void => sessionStorage.removeItem(KEY)
export const hasToken = (): boolean => sessionStorage.getItem(KEY) !== null

export class ApiError extends Error {
  readonly status: number
  readonly hint: string | undefined

  constructor(status: number, message: string, hint?: string) {
    super(message)
    this.status = status
    this.hint = hint
  }
}

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export const ask = async (
  path: string,
  { method = 'GET', body, headers, signal }: Ask = {},
): Promise<Response> => {
  const response = await fetch(path, {
    method,
    headers: {
      authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ''}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    cache: 'no-store',
  })
  if (response.ok) return response
  throw await errorOf(response)
}

export const askJson = async <T>(path: string, options?: Ask): Promise<T> => (await ask(path, options)).json()

const errorOf = async (response: Response): Promise<ApiError> => {
  try {
    const { error } = await response.json()
    return new ApiError(response.status, error.message, error.hint)
  } catch {
    return new ApiError(response.status, `The daemon answered ${response.status}.`)
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
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
}
