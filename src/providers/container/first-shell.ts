import { AppError } from '../../jobs/errors.ts'
import type { EngineClient } from './engine-client.ts'
import { exchangeStreams, type StreamRequest } from './exec-session.ts'

const ANSWER_MS = 5_000
/** The runner says something every few seconds. */
const SILENCE_MS = 20_000

/**
 * Sends a script to the shell that a container starts with, which saves the time of an exec. That shell takes one. Its
 * end is not seen, because the stream is that of the container: a long silence is taken for it. Returns undefined if the
 * shell does not answer, as after a restart of the engine; then nothing was sent.
 */
export const useFirstShell = async (
  client: EngineClient,
  request: StreamRequest & { readonly input: string },
): Promise<{ code: number; stderr: string } | undefined> => {
  const { container, timeoutMs = SILENCE_MS } = request
  const silence = new AbortController()
  const onAbort = (): void => silence.abort(request.signal.reason)
  request.signal.addEventListener('abort', onAbort, { once: true })
  if (request.signal.aborted) onAbort()
  const fallSilent = (): void =>
    silence.abort(new AppError('timeout', `The container ${container} did not answer in time.`))
  let timer = setTimeout(fallSilent, ANSWER_MS)
  let hasAnswered = false
  let answered = (): void => {}
  const answer = new Promise<void>(resolve => {
    answered = resolve
  })
  async function* input(): AsyncGenerator<string> {
    yield 'echo\n'
    await answer
    if (!hasAnswered) return
    request.onOpen?.()
    yield request.input
  }
  const onStdout: StreamRequest['onStdout'] = chunk => {
    clearTimeout(timer)
    timer = setTimeout(fallSilent, timeoutMs)
    if (hasAnswered) return request.onStdout?.(chunk)
    hasAnswered = true
    answered()
    return undefined
  }
  try {
    const opened = await client.hijack({
      method: 'POST',
      path: `/containers/${container}/attach`,
      query: { stream: '1', stdin: '1', stdout: '1', stderr: '1' },
      signal: silence.signal,
    })
    const streams = { container, input: input(), onStdout, signal: request.signal }
    const { stderr } = await exchangeStreams(opened, streams, silence.signal)
    return hasAnswered ? { code: 0, stderr } : undefined
  } catch (error) {
    if (hasAnswered || request.signal.aborted) throw error
    return undefined
  } finally {
    answered()
    clearTimeout(timer)
    request.signal.removeEventListener('abort', onAbort)
  }
}
