import { randomUUID } from 'node:crypto'
import {
  type JSONRPCMessage,
  type McpServerFactory,
  parseJSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/server'
import { MAX_MESSAGE_BYTES } from './message-limit.ts'

export interface SseSessionOptions {
  /** Creates the server of a new session. Requests with another scope cannot use the session. */
  open(request: Request, scope: string): ReturnType<McpServerFactory>
  readonly onerror?: (error: Error) => void
}

interface Session {
  readonly transport: SseTransport
  readonly scope: string
}

/** For each scope, so that the read-only token cannot use up the sessions of the other one. */
const MAX_SESSIONS = 64
/** Proxies close connections that are silent for a minute. */
const KEEP_ALIVE_MS = 25_000
/** A client that does not read its stream is disconnected. */
const MAX_UNREAD_BYTES = 4 * MAX_MESSAGE_BYTES

/**
 * The transport of the protocol revision 2024-11-05, for clients that still use it: GET opens a stream, whose first
 * event names the URL for the messages of the client. Answers are events of the stream.
 */
export const createSseSessions = ({ open, onerror }: SseSessionOptions) => {
  const sessions = new Map<string, Session>()

  const start = async (request: Request, scope: string): Promise<Response> => {
    const inUse = [...sessions.values()].filter(session => session.scope === scope).length
    if (inUse >= MAX_SESSIONS) return refusal(503, 'Too many sessions. Close one, or use /mcp.')
    const id = randomUUID()
    const transport = createSseTransport(`${new URL(request.url).pathname}?session=${id}`)
    sessions.set(id, { transport, scope })
    try {
      const server = await open(request, scope)
      if (onerror) transport.onerror = onerror
      await server.connect(transport)
    } catch (error) {
      sessions.delete(id)
      await transport.close()
      throw error
    }
    const closed = transport.onclose
    transport.onclose = () => {
      sessions.delete(id)
      closed?.()
    }
    const leave = () => void transport.close()
    if (request.signal.aborted) leave()
    else request.signal.addEventListener('abort', leave)
    return new Response(transport.stream, {
      headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' },
    })
  }

  const receive = async (request: Request, scope: string): Promise<Response> => {
    const session = sessions.get(new URL(request.url).searchParams.get('session') ?? '')
    if (session === undefined || session.scope !== scope)
      return refusal(404, 'Session not found: connect again.')
    const body = await readBody(request)
    if (body === undefined) return refusal(413, `A message may have ${MAX_MESSAGE_BYTES} bytes.`)
    let message: JSONRPCMessage
    try {
      message = parseJSONRPCMessage(JSON.parse(body))
    } catch {
      return refusal(400, 'The body is not a JSON-RPC message.')
    }
    session.transport.onmessage?.(message, { request })
    return new Response('Accepted', { status: 202 })
  }

  return {
    handle: (request: Request, scope: string): Promise<Response> =>
      request.method === 'POST' ? receive(request, scope) : start(request, scope),
    close: () => {
      for (const { transport } of sessions.values()) void transport.close()
    },
  }
}

interface SseTransport extends Transport {
  readonly stream: ReadableStream<Uint8Array>
}

const createSseTransport = (endpoint: string): SseTransport => {
  const encoder = new TextEncoder()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const write = (text: string): void => controller?.enqueue(encoder.encode(text))
  const keepAlive = setInterval(() => write(': keep-alive\n\n'), KEEP_ALIVE_MS)
  keepAlive.unref()
  const transport: SseTransport = {
    stream: new ReadableStream(
      {
        start: opened => {
          controller = opened
          write(`event: endpoint\ndata: ${endpoint}\n\n`)
        },
        cancel: () => transport.close(),
      },
      { highWaterMark: MAX_UNREAD_BYTES, size: chunk => chunk.length },
    ),
    start: async () => {},
    send: async message => {
      write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
      if ((controller?.desiredSize ?? 0) < 0) await transport.close()
    },
    close: async () => {
      if (controller === undefined) return
      clearInterval(keepAlive)
      const open = controller
      controller = undefined
      try {
        open.close()
      } catch {
        // The client has closed the stream.
      }
      transport.onclose?.()
    },
  }
  return transport
}

/** Undefined when the body is too large. */
const readBody = async (request: Request): Promise<string | undefined> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > MAX_MESSAGE_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const refusal = (status: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }, { status })
