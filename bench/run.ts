import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { cliBenches } from './cli.ts'
import { clusterBenches } from './cluster.ts'
import { type Bench, type Figure, isMet, ratioOf } from './figure.ts'
import { httpBenches } from './http.ts'
import { jobBenches } from './jobs.ts'
import { mcpBenches } from './mcp.ts'
import { proxmoxBenches } from './proxmox.ts'
import { machineBenches } from './vm/index.ts'

const BENCHES: Bench[] = [
  ...jobBenches,
  ...httpBenches,
  ...cliBenches,
  ...mcpBenches,
  ...proxmoxBenches,
  ...machineBenches,
  ...clusterBenches,
]

/** `npm run bench [-- NAME…] [--json FILE]`: a table, and the same as JSON. */
const main = async (args: string[]): Promise<void> => {
  const json = args.indexOf('--json')
  const file = json === -1 ? undefined : args[json + 1]
  const wanted = args.filter((arg, i) => !arg.startsWith('--') && (json === -1 || i !== json + 1))
  const figures: (Figure & { bench: string })[] = []
  for (const bench of BENCHES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    process.stderr.write(`${bench.name}…\n`)
    for (const figure of await bench.run()) {
      figures.push({ bench: bench.name, ...figure })
      process.stdout.write(`${line(figure)}\n`)
    }
  }
  const report = {
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    at: new Date().toISOString(),
    figures: figures.map(figure => ({ ...figure, ratio: ratioOf(figure), met: isMet(figure) })),
  }
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
  const missed = figures.filter(figure => isMet(figure) === false)
  if (missed.length > 0) process.stdout.write(`\nnot met: ${missed.map(figure => figure.name).join('; ')}\n`)
  process.exitCode = missed.length > 0 ? 1 : 0
}

const line = (figure: Figure): string => {
  const ratio = ratioOf(figure)
  const parts = [`  ${figure.name.padEnd(56)} ${number(figure.value).padStart(10)} ${figure.unit.padEnd(5)}`]
  if (figure.floor !== undefined)
    parts.push(`${number(ratio!)}x ${figure.floor.name} (${number(figure.floor.value)})`)
  if (figure.target !== undefined)
    parts.push(
      `${isMet(figure) ? 'ok' : 'MISSED'}: at ${figure.target.at} ${figure.target.limit}${figure.target.of === 'ratio' ? 'x' : ''}`,
    )
  return parts.join('  ')
}

const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(2))

await main(process.argv.slice(2))
