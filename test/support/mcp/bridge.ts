import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { DaemonInfo } from '../../../src/client/daemon-info.ts'
import { createHttpTransport } from '../../../src/client/http-transport.ts'
import { resolveHome } from '../../../src/config/home.ts'
import { CLI } from '../daemon.ts'
import { until } from '../engine.ts'

export interface Answer {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

export interface Bridge {
  readonly process: ChildProcess
  /** All that came on stdout, parsed; a line that is not JSON fails the test that reads it. */
  messages(): Answer[]
  stderr(): string
  send(message: object): void
  /** Sends a request and waits for its answer. */
  ask(method: string, params?: object): Promise<Answer>
  /** Sends a request without waiting. */
  start(method: string, params?: object): { id: number; answer: Promise<Answer> }
  next(what: string, matches: (message: Answer) => boolean): Promise<Answer>
  initialize(capabilities?: object): Promise<Answer>
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

export interface BridgeSettings {
  readonly directory: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cli?: string
  /** Where the client starts it. */
  readonly cwd?: string
}

export const bridgeEnv = (
  directory: string,
  env: Readonly<Record<string, string>> = {},
): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: directory,
  DEPUTY_HOME: directory,
  DEPUTY_HTTP_PORT: '0',
  ...env,
})

/** `deputy mcp` in a process of its own, spoken to line by line. */
export const startBridge = ({ directory, args = [], env = {}, cli = CLI, cwd }: BridgeSettings): Bridge => {
  const child = spawn(process.execPath, [cli, 'mcp', ...args], {
    env: bridgeEnv(directory, env),
    cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return talkTo(child)
}

export const talkTo = (child: ChildProcess): Bridge => {
  let out = ''
  let errors = ''
  let parsed = 0
  const messages: Answer[] = []
  const ended = once(child, 'exit').then(([code, signal]) => signal ?? code)
  child.stdout?.setEncoding('utf8').on('data', chunk => {
    out += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', chunk => {
    errors += chunk
  })
  child.stdin?.on('error', () => {})
  const read = () => {
    for (let end = out.indexOf('\n', parsed); end !== -1; end = out.indexOf('\n', parsed)) {
      messages.push(JSON.parse(out.slice(parsed, end)))
      parsed = end + 1
    }
    return messages
  }
  const next = async (what: string, matches: (message: Answer) => boolean): Promise<Answer> => {
    await until(async () => read().some(matches), `${what} (stderr: ${errors})`, 30_000)
    return messages.find(matches)!
  }
  let count = 0
  const bridge: Bridge = {
    process: child,
    messages: read,
    stderr: () => errors,
    send: message => void child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    start: (method, params) => {
      const id = ++count
      bridge.send({ id, method, ...(params && { params }) })
      return { id, answer: next(`the answer to ${method}`, message => message.id === id) }
    },
    ask: (method, params) => bridge.start(method, params).answer,
    next,
    initialize: async (capabilities = {}) => {
      const answer = await bridge.ask('initialize', {
        protocolVersion: '2025-11-25',
        capabilities,
        clientInfo: { name: 'raw', version: '1' },
      })
      bridge.send({ method: 'notifications/initialized' })
      return answer
    },
    ended,
  }
  return bridge
}

/** What makes a request one of the current revision. */
export const envelope = (more: object = {}, capabilities: object = {}) => ({
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  },
  ...more,
})

/** The daemon of a home as it tells of itself, or undefined when none answers. */
export const daemonOf = async (directory: string): Promise<DaemonInfo | undefined> => {
  const transport = createHttpTransport(resolveHome({ DEPUTY_HOME: directory }).socket, {
    connection: 'close',
  })
  try {
    return await transport.json<DaemonInfo>({ path: '/api/daemon', answerMs: 5000 })
  } catch {
    return undefined
  } finally {
    transport.close()
  }
}

/** A process that has ended but that nobody has waited for is not alive: not every init does that at once. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Ends every daemon of a home, also one that a bridge has just started and that does not listen yet. */
export const stopDaemonOf = async (directory: string): Promise<void> => {
  const pids = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => isDaemonOf(pid, directory))
  for (const pid of pids) process.kill(pid, 'SIGTERM')
  for (const pid of pids) await until(async () => !isAlive(pid), 'the daemon to end', 20_000)
}

const isDaemonOf = (pid: number, directory: string): boolean => {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return command.includes('\0daemon\0run\0') && environment.includes(`DEPUTY_HOME=${directory}`)
  } catch {
    return false
  }
}
