import type { ServerContext } from '@modelcontextprotocol/server'

/** Sends progress notifications for this request; undefined when the client did not ask for them. */
export const progressOf = (ctx: ServerContext): ((message: string) => void) | undefined => {
  const progressToken = ctx.mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  const started = performance.now()
  let last = -1
  return message => {
    if (ctx.mcpReq.signal.aborted) return
    // Progress is the elapsed time in seconds: there is no total, and the protocol requires an increasing number.
    const progress = Math.max(Math.round((performance.now() - started) / 100) / 10, last + 0.1)
    last = progress
    const params = { progressToken, progress: Math.round(progress * 10) / 10, message }
    // Ignore a closed connection: the call itself reports it.
    ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
  }
}
