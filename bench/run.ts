import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { cliBenches } from './cli.ts'
import { clusterBenches } from './cluster.ts'
import { containerBenches } from './containers.ts'
import { drawFigures } from './draw-figures.ts'
import { type Bench, type Figure, isMet, ratioOf, relaxed } from './figure.ts'
import { appendReport, type MeasuredFigure, type Report } from './history.ts'
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

interface Options {
  readonly quick: boolean
  readonly names: readonly string[]
  /** The file of earlier runs, to which this one is added. */
  readonly json: string | undefined
  /** The file for a picture of this run. */
  readonly svg: string | undefined
}

const parseOptions = (args: readonly string[]): Options => {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      svg: { type: 'string' },
    },
    allowPositionals: true,
  })
  const unknown = positionals.find(name => !BENCHES.some(bench => bench.name === name))
  if (unknown !== undefined)
    throw new Error(`unknown benchmark '${unknown}': use ${BENCHES.map(({ name }) => name).join(', ')}`)
  return { quick: values.quick, names: positionals, json: values.json, svg: values.svg }
}

const currentLoad = (): number => loadavg()[0] ?? 0

/** `npm run bench [-- NAME…] [--quick] [--json FILE] [--svg FILE]`: a table, the same as JSON, and as a picture. */
const main = async (args: string[]): Promise<void> => {
  const { quick, names, json, svg } = parseOptions(args)
  const figures: MeasuredFigure[] = []
  const benches = BENCHES.filter(bench => !quick || bench.quick)
  for (const bench of benches.filter(({ name }) => names.length === 0 || names.includes(name))) {
    process.stderr.write(`${bench.name}… (load ${currentLoad().toFixed(1)})\n`)
    for (const figure of await (quick ? measureQuickly(bench) : bench.run(false))) {
      const [ratio, met] = [ratioOf(figure), isMet(figure)]
      figures.push({
        bench: bench.name,
        ...figure,
        load: currentLoad(),
        ...(ratio !== undefined && { ratio }),
        ...(met !== undefined && { met }),
      })
      process.stdout.write(`${line(figure)}\n`)
    }
  }
  const report: Report = {
    at: new Date().toISOString(),
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    figures,
  }
  if (json !== undefined) appendReport(json, report)
  if (svg !== undefined) writeFileSync(svg, drawFigures(report))
  const missed = figures.filter(({ met }) => met === false)
  if (missed.length > 0) process.stdout.write(`\nnot met: ${missed.map(figure => figure.name).join('; ')}\n`)
  process.exitCode = missed.length > 0 ? 1 : 0
}

const line = (figure: Figure): string => {
  const ratio = ratioOf(figure)
  const parts = [`  ${figure.name.padEnd(56)} ${number(figure.value).padStart(10)} ${figure.unit.padEnd(5)}`]
  if (figure.spread !== undefined) parts.push(`(${figure.spread.map(number).join('–')})`)
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
