export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** Parses a `text/event-stream`. Skips comments (keep-alives) and events without data. */
export async function* parseServerEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let buffer = ''
  let current = blank('')
  for await (const chunk of source) {
    buffer += decoder.decode(chunk, { stream: true })
    // A trailing CR may be the first half of a CRLF: leave it for the next chunk.
    const lines = buffer.split(/\r\n|\n|\r(?!$)/)
    buffer = lines.pop() ?? ''
    for (const line of lines) {
      if (line !== '') {
        take(current, line)
        continue
      }
      if (current.data.length > 0)
        yield { id: current.id, event: current.event, data: current.data.join('\n') }
      current = blank(current.id)
    }
  }
}

interface Pending {
  id: string
  event: string
  data: string[]
}

const blank = (id: string): Pending => ({ id, event: 'message', data: [] })

const take = (pending: Pending, line: string): void => {
  const colon = line.indexOf(':')
  if (colon === 0) return
  const field = colon === -1 ? line : line.slice(0, colon)
  const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
  if (field === 'data') pending.data.push(value)
  else if (field === 'event') pending.event = value
  else if (field === 'id' && !value.includes('\0')) pending.id = value
}
