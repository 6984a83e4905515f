import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Home } from '../src/config/home.ts'
import { openStore } from '../src/store/sqlite-store.ts'
import { type BenchDaemon, startDaemon } from './daemon.ts'
import { type Bench, type Figure, percentile } from './figure.ts'
import { insertFinished } from './http.ts'
import { load } from './load.ts'

const CLI = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))
const STARTS = 40
const QUICK_STARTS = 15
const JOBS = 100_000
const CALLS = 1500

/** A client of the bridge, line by line: nothing of a client library is measured. */
const openBridge = (daemon: BenchDaemon) => {
  const child = spawn(process.execPath, [CLI, 'mcp'], {
    env: { PATH: process.env.PATH, DEPUTY_HOME: join(daemon.home.stateDir, '..') },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const waiting = new Map<number, (answer: { result?: unknown }) => void>()
  createInterface({ input: child.stdout }).on('line', line => {
    const message = JSON.parse(line)
    waiting.get(message.id)?.(message)
    waiting.delete(message.id)
  })
  let count = 0
  const ask = (method: string, params: object): Promise<{ result?: unknown }> =>
    new Promise(resolve => {
      const id = ++count
      waiting.set(id, resolve)
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    })
  const initialize = () =>
    ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'bench', version: '1' },
    })
  return { ask, initialize, close: () => end(child) }
}

const end = async (child: ChildProcessWithoutNullStreams): Promise<void> => {
  child.stdin.end()
  await once(child, 'exit')
}

/** To its first byte, as the bridge is measured to its answer. */
const bareNode = async (): Promise<number> => {
  const began = performance.now()
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("x")'], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await once(child.stdout, 'data')
  const took = performance.now() - began
  await once(child, 'exit')
  return took
}

/** From the start of the process a client starts to the tools it offers, a daemon running. */
const start: Bench['run'] = async quick => {
  const daemon = await startDaemon()
  const listed = async (): Promise<number> => {
    const began = performance.now()
    const bridge = openBridge(daemon)
    void bridge.initialize()
    await bridge.ask('tools/list', {})
    const took = performance.now() - began
    await bridge.close()
    return took
  }
  try {
    const [ours, bare]: [number[], number[]] = [[], []]
    for (let i = 0; i < (quick ? QUICK_STARTS : STARTS); i++) {
      ours.push(await listed())
      bare.push(await bareNode())
    }
    return [
      {
        name: 'MCP over stdio, start to tools/list, p50',
        value: percentile(ours, 0.5),
        unit: 'ms',
        floor: { name: 'bare node start', value: percentile(bare, 0.5) },
        target: { of: 'ratio', at: 'most', limit: 5 },
      },
    ]
  } finally {
    await daemon.stop()
  }
}

/** Looking at jobs over MCP when there are a hundred thousand of them. */
const lookups: Bench['run'] = async () => {
  let ids: string[] = []
  const daemon = await startDaemon({}, async (home: Home) => {
    const store = openStore(join(home.stateDir, 'deputy.db'))
    ids = await insertFinished(store, JOBS)
    await store.close()
  })
  const bridge = openBridge(daemon)
  const some = () => ids[Math.floor(Math.random() * ids.length)]
  const timed = async (name: string, args: () => object, count: number): Promise<number[]> => {
    const times: number[] = []
    for (let i = 0; i < count; i++) {
      const began = performance.now()
      const { result } = await bridge.ask('tools/call', { name, arguments: args() })
      if (result === undefined) throw new Error(`${name} failed`)
      times.push(performance.now() - began)
    }
    return times
  }
  try {
    await bridge.initialize()
    const status = () => ({ job_id: some() })
    const page = () => ({ cursor: some() })
    for (const [name, args] of [
      ['get_job_status', status],
      ['list_jobs', page],
    ] as const)
      await timed(name, args, 200)
    const rest = await load({
      socketPath: daemon.home.socket,
      count: CALLS,
      inFlight: 1,
      next: () => ({ path: `/api/jobs/${some()}` }),
    })
    const restPage = await load({
      socketPath: daemon.home.socket,
      count: CALLS,
      inFlight: 1,
      next: () => ({ path: `/api/jobs?limit=20&cursor=${some()}` }),
    })
    return [
      ...figures('get_job_status', await timed('get_job_status', status, CALLS), rest.times, 3),
      ...figures('list_jobs', await timed('list_jobs', page, CALLS), restPage.times, 8),
    ]
  } finally {
    await bridge.close()
    await daemon.stop()
  }
}

const figures = (what: string, times: readonly number[], rest: readonly number[], limit: number): Figure[] =>
  [0.5, 0.99].map(share => ({
    name: `${what} over MCP among ${JOBS} jobs, p${share * 100}`,
    value: percentile(times, share),
    unit: 'ms',
    floor: { name: 'the same over REST', value: percentile(rest, share) },
    ...(share === 0.5 && { target: { of: 'value' as const, at: 'most' as const, limit } }),
  }))

export const mcpBenches: Bench[] = [
  { name: 'mcp-start', quick: true, run: start },
  { name: 'mcp-lookups', run: lookups },
]
