import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { bridgeHeaders } from './bridge/bridge-headers.ts'
import { connectDaemon } from './bridge/connect-daemon.ts'
import { createConversation } from './bridge/conversation.ts'
import { errorResponse, isRequest, type Message, parseMessage } from './bridge/json-rpc.ts'
import { createLineSplitter } from './bridge/line-splitter.ts'
import { onShutdown } from './bridge/shutdown-triggers.ts'
import { STOPPING_METHOD } from './stopping-notification.ts'

export interface BridgeOptions {
  readonly env: NodeJS.ProcessEnv
  /** What follows `deputy mcp`: `--toolsets NAMES`, `--read-only`. */
  readonly argv: readonly string[]
}

/** Time for pending responses after the client has closed stdin, as `echo … | deputy mcp` does. Connecting is extra. */
const DRAIN_MS = 10_000
/** Pause between attempts to start a daemon, so that a busy client does not spawn one with each message. */
const RECONNECT_PAUSE_MS = 2000
const MAX_QUEUED_BYTES = 48 * 1024 * 1024
const FOR_CLIENTS =
  'this is an MCP server for a client to start; add it with: claude mcp add deputy -- deputy mcp'

/**
 * The process that an MCP client starts. It copies lines between its stdio and the daemon. It loads few modules because
 * clients start it often, and it outlives the daemon because many clients do not restart a server that has exited. It
 * ends by calling `process.exit`.
 */
export const runBridge = ({ env, argv }: BridgeOptions): void => {
  const { headers, problems, error } = bridgeHeaders(argv, env)
  if (error !== undefined) {
    process.stderr.write(`error: ${error}\n`)
    process.exit(2)
  }
  const conversation = createConversation()
  const { stdin, stdout } = process
  let daemon: Socket | undefined
  let connecting = false
  let queue: Buffer[] = []
  let queuedBytes = 0
  let failure: { text: string; at: number } | undefined
  let inputEnded = false

  const exit = () => process.exit(0)
  const toClient = (line: string | Buffer) => writeLine(line, stdout, daemon)
  const toDaemon = (socket: Socket, line: string | Buffer) => writeLine(line, socket, stdin)

  const exitWhenDone = () => {
    if (inputEnded && conversation.pendingCount() === 0 && queue.length === 0) exit()
  }

  const limitDrain = () => {
    if (inputEnded && !connecting) setTimeout(exit, DRAIN_MS)
  }

  const fromClient = (line: Buffer) => {
    const message = parseMessage(line)
    if (message === undefined) {
      log('the client sent a line that is not JSON-RPC')
      return toClient(errorResponse(null, -32700, 'Invalid JSON-RPC message.'))
    }
    if (daemon !== undefined) {
      conversation.sent(message, line.toString())
      return toDaemon(daemon, line)
    }
    // Only a request starts a daemon. What else the next one needs to know, `resume` sends.
    if (!connecting && !isRequest(message)) return conversation.sent(message, line.toString())
    if (failure !== undefined && performance.now() - failure.at < RECONNECT_PAUSE_MS) {
      if (isRequest(message)) toClient(errorResponse(message.id, -32603, failure.text))
      return
    }
    queue.push(line)
    queuedBytes += line.length
    if (queuedBytes > MAX_QUEUED_BYTES) stdin.pause()
    void connect()
  }

  const flush = () => {
    const lines = queue
    queue = []
    queuedBytes = 0
    stdin.resume()
    for (const line of lines) fromClient(line)
  }

  const attach = (socket: Socket, rest: Buffer) => {
    daemon = socket
    readDaemon(socket, rest, {
      onLine: (message, line) => conversation.received(message) && toClient(line),
      afterLine: exitWhenDone,
      onClose: stopped => {
        if (daemon !== socket) return
        daemon = undefined
        log(stopped ? 'the daemon was stopped' : 'lost the connection to the daemon, reconnecting')
        stdin.resume()
        for (const line of conversation.failInFlight()) toClient(line)
        if (!stopped || conversation.pendingCount() > 0) void connect()
      },
    })
  }

  const connect = async () => {
    if (connecting || daemon !== undefined) return
    connecting = true
    try {
      const { socket, rest } = await connectDaemon(env, headers)
      failure = undefined
      attach(socket, rest)
      const { toDaemon: replayed, toClient: notifications } = conversation.resume()
      for (const line of replayed) toDaemon(socket, line)
      for (const line of notifications) toClient(line)
    } catch (error) {
      failure = { text: await explain(error), at: performance.now() }
      log(failure.text)
      for (const line of conversation.failAll(failure.text)) toClient(line)
    } finally {
      connecting = false
    }
    flush()
    exitWhenDone()
    limitDrain()
  }

  for (const problem of problems) log(problem)
  if (stdin.isTTY) log(FOR_CLIENTS)
  onShutdown(exit)
  stdin.on('data', createLineSplitter(fromClient))
  stdin.on('error', exit)
  stdin.once('end', () => {
    inputEnded = true
    exitWhenDone()
    limitDrain()
  })
  void connect()
}

const NEWLINE = Buffer.from('\n')

/** Writes a line, and pauses the source of lines until the target has taken it. */
const writeLine = (line: string | Buffer, to: Writable, from: Readable | undefined): void => {
  if (to.write(typeof line === 'string' ? `${line}\n` : Buffer.concat([line, NEWLINE]))) return
  from?.pause()
  to.once('drain', () => from?.resume())
}

interface DaemonHandlers {
  onLine(message: Message, line: Buffer): unknown
  afterLine(): void
  /** `stopped`: the daemon has announced that it stops. */
  onClose(stopped: boolean): void
}

/** Reads the lines of the daemon until the connection ends. `rest` came with the response to the upgrade. */
const readDaemon = (socket: Socket, rest: Buffer, handlers: DaemonHandlers): void => {
  let stopped = false
  const lines = createLineSplitter(line => {
    const message = parseMessage(line)
    if (message === undefined) return log('the daemon sent a line that is not JSON-RPC')
    if (message.method === STOPPING_METHOD) stopped = true
    else handlers.onLine(message, line)
    handlers.afterLine()
  })
  socket.on('data', lines)
  // Handled in 'close', which always follows.
  socket.on('error', () => {})
  socket.once('close', () => handlers.onClose(stopped))
  if (rest.length > 0) lines(rest)
  socket.resume()
}

const log = (text: string): void => void process.stderr.write(`deputy mcp: ${text}\n`)

const explain = async (thrown: unknown): Promise<string> => {
  const { toAppError } = await import('../jobs/errors.ts')
  const { message, hint } = toAppError(thrown)
  return hint === undefined ? message : `${message}\nNext: ${hint}`
}
