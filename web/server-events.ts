export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** Reads server-sent events from a fetch: EventSource cannot send a bearer token. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let buffer = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      buffer += decoder.decode(value, { stream: true })
      const messages = buffer.split('\n\n')
      buffer = messages.pop() ?? ''
      for (const message of messages) {
        const event = parse(message)
        if (event.data !== '') yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const parse = (message: string): StreamEvent => {
  const fields = { id: '', event: 'message', data: '' }
  for (const line of message.split('\n')) {
    const colon = line.indexOf(': ')
    const name = line.slice(0, colon)
    if (name === 'id' || name === 'event' || name === 'data') fields[name] = line.slice(colon + 2)
  }
  return fields
}
