import type { ServerContext } from '@modelcontextprotocol/server'

/** How to report progress on this request, or undefined when its client did not ask for it. */
export const progressOf = (ctx: ServerContext): ((message: string) => void) | undefined => {
  const progressToken = ctx.mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  const started = performance.now()
  let last = -1
  return message => {
    if (ctx.mcpReq.signal.aborted) return
    // Seconds of waiting: there is no total to tell, and the protocol wants a number that grows.
    const progress = Math.max(Math.round((performance.now() - started) / 100) / 10, last + 0.1)
    last = progress
    const params = { progressToken, progress: Math.round(progress * 10) / 10, message }
    // The client may be gone by now; the call itself finds out.
    ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
  }
}
