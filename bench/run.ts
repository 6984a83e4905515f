import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { cliBenches } from './cli.ts'
import { clusterBenches } from './cluster.ts'
import { containerBenches } from './containers.ts'
import { type Bench, type Figure, isMet, ratioOf, relaxed } from './figure.ts'
import { httpBenches } from './http.ts'
import { jobBenches } from './jobs.ts'
import { manyBenches } from './many.ts'
import { mcpBenches } from './mcp.ts'
import { proxmoxBenches } from './proxmox.ts'
import { machineBenches } from './vm/index.ts'

const BENCHES: Bench[] = [
  ...jobBenches,
  ...manyBenches,
  ...httpBenches,
  ...cliBenches,
  ...mcpBenches,
  ...proxmoxBenches,
  ...machineBenches,
  ...containerBenches,
  ...clusterBenches,
]

/** How often a quick bench that misses a limit is run: noise does not miss it each time. */
const TRIES = 3

const measureQuickly = async (bench: Bench): Promise<Figure[]> => {
  for (let left = TRIES - 1; ; left--) {
    const figures = (await bench.run(true)).map(relaxed)
    if (figures.length === 0 && process.env.DEPUTY_REQUIRE_E2E)
      throw new Error(`${bench.name} has no figures here, but must have some`)
    if (left === 0 || figures.every(figure => isMet(figure) !== false)) return figures
    for (const figure of figures) process.stderr.write(`  measured again: ${line(figure).trim()}\n`)
  }
}

/** `npm run bench [-- NAME…] [--quick] [--json FILE]`: a table, and the same as JSON. */
const main = async (args: string[]): Promise<void> => {
  const quick = args.includes('--quick')
  const json = args.indexOf('--json')
  const file = json === -1 ? undefined : args[json + 1]
  const wanted = args.filter((arg, i) => !arg.startsWith('--') && (json === -1 || i !== json + 1))
  const figures: (Figure & { bench: string })[] = []
  const benches = BENCHES.filter(bench => !quick || bench.quick)
  for (const bench of benches.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    process.stderr.write(`${bench.name}…\n`)
    for (const figure of await (quick ? measureQuickly(bench) : bench.run(false))) {
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
