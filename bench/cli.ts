import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { startDaemon } from './daemon.ts'
import { type Bench, medianOf, percentile } from './figure.ts'

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))
const ROUNDS = 20

const time = (args: readonly string[], env: NodeJS.ProcessEnv = process.env): number => {
  const began = performance.now()
  const { status } = spawnSync(process.execPath, args, { env })
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`)
  return performance.now() - began
}

/** Commands that people and shells call all the time must not be felt. */
const start: Bench['run'] = async () => {
  const calls = { bare: ['-e', '0'], version: [MAIN, '--version'], completion: [MAIN, 'completion', 'bash'] }
  const times = { bare: [] as number[], version: [] as number[], completion: [] as number[] }
  for (let round = 0; round < ROUNDS; round++)
    for (const name of ['bare', 'version', 'completion'] as const) times[name].push(time(calls[name]))
  const floor = { name: 'bare Node start', value: percentile(times.bare, 0.5) }
  return (['version', 'completion'] as const).map(name => ({
    name: `deputy ${name === 'version' ? '--version' : 'completion bash'}, p50`,
    ...medianOf(times[name]),
    unit: 'ms',
    floor,
    target: { of: 'ratio', at: 'most', limit: 2 },
  }))
}

/** A command and its job, with a daemon that runs. */
const runTrue: Bench['run'] = async () => {
  const { directory, stop } = await startDaemon()
  try {
    const env = { PATH: process.env.PATH, DEPUTY_HOME: directory }
    const times = { bare: [] as number[], run: [] as number[] }
    for (let round = -1; round < ROUNDS; round++) {
      const [bare, run] = [time(['-e', '0']), time([MAIN, 'run', '--', 'true'], env)]
      // The first one boots a machine.
      if (round < 0) continue
      times.bare.push(bare)
      times.run.push(run)
    }
    const floor = { name: 'bare Node start', value: percentile(times.bare, 0.5) }
    return [{ name: 'deputy run -- true, p50', ...medianOf(times.run), unit: 'ms', floor }]
  } finally {
    await stop()
  }
}

export const cliBenches: Bench[] = [
  { name: 'cli', quick: true, run: start },
  { name: 'cli-run', run: runTrue },
]
