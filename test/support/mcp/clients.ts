import { Duplex } from 'node:stream'
import {
  Client,
  type ClientOptions,
  type JSONRPCMessage,
  ReadBuffer,
  StreamableHTTPClientTransport,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { createMcpService, type McpDependencies, type McpService } from '../../../src/mcp/mcp-service.ts'
import { serveMcpStream } from '../../../src/mcp/serve-stream.ts'
import { createServerFactory } from '../../../src/mcp/server-factory.ts'
import { jobsToolset } from '../../../src/mcp/tools/jobs/jobs-toolset.ts'
import type { Selection, Toolset } from '../../../src/mcp/toolset.ts'
import { createUpdates } from '../../../src/mcp/updates.ts'
import { createMemoryDeputy, type MemoryDeputy } from '../memory-deputy.ts'

export type Era = 'modern' | 'legacy'
export type Wire = 'http' | 'stdio'

export const ALL_WAYS: readonly { wire: Wire; era: Era }[] = [
  { wire: 'stdio', era: 'modern' },
  { wire: 'stdio', era: 'legacy' },
  { wire: 'http', era: 'modern' },
  { wire: 'http', era: 'legacy' },
]

export interface Connected {
  readonly client: Client
  readonly deputy: MemoryDeputy
  readonly mcp: McpService
  [Symbol.asyncDispose](): Promise<void>
}

export interface ConnectOptions {
  readonly wire: Wire
  readonly era: Era
  readonly deputy?: MemoryDeputy
  readonly selection?: Selection
  /** Toolsets besides that of jobs. */
  readonly more?: readonly Toolset[]
  readonly readOnlyToken?: boolean
  readonly client?: ClientOptions
}

export const dependencies = (deputy: MemoryDeputy, more: readonly Toolset[] = []): McpDependencies => ({
  deputy,
  available: [jobsToolset, ...more],
  version: '1.2.3',
  instructionsContext: () => ({
    runtimes: [
      { name: 'sandbox', ready: true },
      { name: 'proxmox', ready: false, reason: 'PROXMOX_HOST is not set' },
    ],
    agents: [],
    secrets: ['API_KEY'],
    notes: [],
  }),
})

/** A client of the official SDK, connected in this process over the wire and era asked for. */
export const connect = async (options: ConnectOptions): Promise<Connected> => {
  const deputy = options.deputy ?? createMemoryDeputy()
  const mcp = createMcpService(dependencies(deputy, options.more))
  const updates = createUpdates(deputy)
  const client = new Client(
    { name: 'Test Client', version: '1' },
    {
      versionNegotiation: { mode: options.era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
      ...options.client,
    },
  )
  let transport: Transport
  if (options.wire === 'http') {
    const caller = { readOnly: options.readOnlyToken ?? false }
    const url = new URL('http://127.0.0.1/mcp')
    if (options.selection?.readOnly) url.searchParams.set('read_only', '1')
    if (options.selection?.toolsets) url.searchParams.set('toolsets', options.selection.toolsets.join(','))
    transport = new StreamableHTTPClientTransport(url, {
      fetch: (input, init) => mcp.http.fetch(new Request(input, init), caller),
    })
  } else {
    const [ours, theirs] = duplexPair()
    const factory = createServerFactory({ ...dependencies(deputy, options.more), ...options.selection })
    void serveMcpStream(theirs, { factory, updates, bridge: { directory: undefined } })
    transport = streamTransport(ours)
  }
  await client.connect(transport)
  return {
    client,
    deputy,
    mcp,
    [Symbol.asyncDispose]: async () => {
      await client.close()
      await mcp.close()
      updates.close()
    },
  }
}

/** Newline-delimited messages over a stream, the client's end. */
const streamTransport = (stream: Duplex): Transport => {
  const buffer = new ReadBuffer()
  const transport: Transport = {
    start: async () => {
      stream.on('data', (chunk: Buffer) => {
        buffer.append(chunk)
        for (let message = buffer.readMessage(); message !== null; message = buffer.readMessage())
          transport.onmessage?.(message)
      })
      stream.on('close', () => transport.onclose?.())
    },
    send: async (message: JSONRPCMessage) => void stream.write(serializeMessage(message)),
    close: async () => void stream.destroy(),
  }
  return transport
}

/** Two ends of one connection, as a socket would be. */
const duplexPair = (): [Duplex, Duplex] => {
  const ends: Duplex[] = []
  const make = (other: () => Duplex) =>
    new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        other().push(chunk)
        done()
      },
      final(done) {
        other().push(null)
        done()
      },
      destroy(error, done) {
        if (!other().destroyed) setImmediate(() => other().destroy())
        done(error)
      },
    })
  ends.push(
    make(() => ends[1]!),
    make(() => ends[0]!),
  )
  return [ends[0]!, ends[1]!]
}
