import { AppError } from '../../jobs/errors.ts'
import type { EngineClient } from './engine-client.ts'
import { converse, type StreamRequest } from './exec-session.ts'

/** The runner says something every few seconds. */
const SILENCE_MS = 20_000

/**
 * Sends a script to the shell that a container starts with, which saves the time of an exec. That shell takes one. Its
 * end is not seen, because the stream is that of the container: a long silence is taken for it.
 */
export const useFirstShell = async (
  client: EngineClient,
  request: StreamRequest,
): Promise<{ code: number; stderr: string }> => {
  const { container, timeoutMs = SILENCE_MS } = request
  const silence = new AbortController()
  const onAbort = (): void => silence.abort(request.signal.reason)
  request.signal.addEventListener('abort', onAbort, { once: true })
  if (request.signal.aborted) onAbort()
  const fallSilent = (): void =>
    silence.abort(new AppError('timeout', `The container ${container} did not answer in time.`))
  const timer = setTimeout(fallSilent, timeoutMs)
  try {
    const opened = await client.hijack({
      method: 'POST',
      path: `/containers/${container}/attach`,
      query: { stream: '1', stdin: '1', stdout: '1', stderr: '1' },
      signal: silence.signal,
    })
    const onStdout: StreamRequest['onStdout'] = chunk => {
      timer.refresh()
      return request.onStdout?.(chunk)
    }
    const { stderr } = await converse(opened, { ...request, onStdout }, silence.signal)
    return { code: 0, stderr }
  } finally {
    clearTimeout(timer)
    request.signal.removeEventListener('abort', onAbort)
  }
}
