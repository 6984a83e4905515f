import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: unknown }

export interface MessagesRequest {
  readonly model: string
  readonly stream?: boolean
  readonly tools?: readonly { readonly name: string }[]
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}

export interface Anthropic {
  readonly url: string
  readonly port: number
  /** Requests to the Messages API, in order. */
  readonly requests: MessagesRequest[]
  /** What callers proved themselves with, by header. */
  readonly credentials: string[]
  /** How many connections there have been. */
  connections(): number
  [Symbol.asyncDispose](): Promise<void>
}

/** Thrown by a script that wants the API to refuse. */
export class Refusal extends Error {
  readonly status: number
  readonly body: unknown

  constructor(status: number, body: unknown) {
    super(`refused with ${status}`)
    this.status = status
    this.body = body
  }
}

export const USAGE = { input_tokens: 1200, output_tokens: 34, cache_read_input_tokens: 56 }

/**
 * A stand-in for the API the Claude CLI speaks to, on loopback: the real CLI runs, and a script says what the model
 * would have said.
 */
export const startAnthropic = async (
  reply: (request: MessagesRequest) => Block[],
  { host = '127.0.0.1' } = {},
): Promise<Anthropic> => {
  const requests: MessagesRequest[] = []
  const credentials: string[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '/', 'http://x')
    const body = await text(request)
    const key = request.headers['x-api-key'] ?? request.headers.authorization
    if (key !== undefined) credentials.push(String(key))
    if (pathname.endsWith('/count_tokens')) return json(response, { input_tokens: 10 })
    if (request.method !== 'POST' || !pathname.endsWith('/v1/messages'))
      return json(response, request.method === 'HEAD' ? {} : { error: { type: 'not_found_error' } }, 404)
    const asked = JSON.parse(body) as MessagesRequest
    requests.push(asked)
    try {
      answer(response, asked, reply(asked))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      json(response, error.body, error.status)
    }
  }
  const server = createServer((request, response) => {
    handle(request, response).catch(error => response.destroy(error))
  })
  let connections = 0
  server.on('connection', () => {
    connections += 1
  })
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host}:${port}`,
    port,
    requests,
    credentials,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** What the last tool call brought back, as text. */
export const lastToolResult = ({ messages }: MessagesRequest): string | undefined => {
  const blocks = messages.flatMap(message => (Array.isArray(message.content) ? message.content : []))
  const last = blocks.findLast(block => block.type === 'tool_result')
  return last === undefined
    ? undefined
    : typeof last.content === 'string'
      ? last.content
      : JSON.stringify(last.content)
}

/** How often a tool has been called so far. */
export const callsOf = ({ messages }: MessagesRequest, name: string): number =>
  messages
    .flatMap(message => (Array.isArray(message.content) ? message.content : []))
    .filter(block => block.type === 'tool_use' && block.name === name).length

let count = 0

const answer = (response: ServerResponse, { model, stream }: MessagesRequest, blocks: Block[]): void => {
  const content = blocks.map(block =>
    block.type === 'tool_use' ? { id: `toolu_${++count}`, ...block } : block,
  )
  const stop_reason = content.some(block => block.type === 'tool_use') ? 'tool_use' : 'end_turn'
  const message = { id: `msg_${++count}`, type: 'message', role: 'assistant', model, stop_sequence: null }
  if (!stream) {
    json(response, { ...message, content, stop_reason, usage: USAGE })
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (type: string, data: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
  send('message_start', {
    message: { ...message, content: [], stop_reason: null, usage: { ...USAGE, output_tokens: 1 } },
  })
  content.forEach((block, index) => {
    const empty = block.type === 'text' ? { ...block, text: '' } : { ...block, input: {} }
    const delta =
      block.type === 'text'
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
    send('content_block_start', { index, content_block: empty })
    send('content_block_delta', { index, delta })
    send('content_block_stop', { index })
  })
  send('message_delta', {
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: USAGE.output_tokens },
  })
  send('message_stop', {})
  response.end()
}

const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
