import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { drawFigures } from '../../../bench/draw-figures.ts'
import { medianOf } from '../../../bench/figure.ts'
import { appendReport, type Report, readReports } from '../../../bench/history.ts'
import { removeDirectory } from '../../support/remove-directory.ts'

const directory = mkdtempSync(join(tmpdir(), 'bench-'))
afterAll(() => removeDirectory(directory))

const report = (at: string): Report => ({
  at,
  node: 'v20.0.0',
  cpu: 'A <fast> one',
  cores: 2,
  figures: [
    {
      bench: 'a',
      name: 'one & two',
      value: 30,
      unit: 'ms',
      load: 1.5,
      floor: { name: 'bare', value: 10 },
      ratio: 3,
    },
    { bench: 'a', name: 'alone', value: 5, unit: 'ms', load: 1.5 },
  ],
})

it('keeps the figures of earlier runs, oldest first', () => {
  const file = join(directory, 'history.json')
  expect(readReports(file)).toEqual([])
  appendReport(file, report('2026-01-01'))
  appendReport(file, report('2026-01-02'))
  expect(readReports(file)).toEqual([report('2026-01-01'), report('2026-01-02')])
})

it('does not overwrite a file that is something else', () => {
  const file = join(directory, 'other.json')
  writeFileSync(file, '{}')
  expect(() => appendReport(file, report('2026-01-01'))).toThrow(`${file} is not a list of runs`)
})

it('draws the figures that have something beside them', () => {
  const svg = drawFigures(report('2026-01-01'))
  expect(svg).toContain('one &amp; two')
  expect(svg).toContain('>3.00x<')
  expect(svg).toContain('A &lt;fast&gt; one')
  expect(svg).not.toContain('alone')
  expect(svg.match(/<rect /g)).toHaveLength(1)
})

it('gives a median with what half of the samples lie between', () => {
  expect(medianOf([9, 1, 5, 3, 7])).toEqual({ value: 5, spread: [3, 7] })
})
