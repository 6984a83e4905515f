import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Bench, percentile } from './figure.ts'

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))
const ROUNDS = 20

const time = (args: readonly string[]): number => {
  const began = performance.now()
  spawnSync(process.execPath, args)
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
    value: percentile(times[name], 0.5),
    unit: 'ms',
    floor,
    target: { of: 'ratio', at: 'most', limit: 2 },
  }))
}

export const cliBenches: Bench[] = [{ name: 'cli', quick: true, run: start }]
