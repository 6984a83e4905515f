import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Figure } from './figure.ts'

/** One run of the benchmarks on one computer. */
export interface Report {
  readonly at: string
  readonly node: string
  readonly cpu: string
  readonly cores: number
  readonly figures: readonly MeasuredFigure[]
}

export interface MeasuredFigure extends Figure {
  readonly bench: string
  /** Processes that could run, on average over the minute before the end of the bench. */
  readonly load: number
  readonly ratio?: number
  readonly met?: boolean
}

/** Adds a run to a file of earlier runs, oldest first. */
export const appendReport = (file: string, report: Report): void =>
  writeFileSync(file, `${JSON.stringify([...readReports(file), report], null, 2)}\n`)

export const readReports = (file: string): Report[] => {
  if (!existsSync(file)) return []
  const reports: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!Array.isArray(reports))
    throw new Error(`${file} is not a list of runs of npm run bench: use another file`)
  return reports as Report[]
}
