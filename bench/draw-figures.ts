import type { MeasuredFigure, Report } from './history.ts'

const ROW = 34
const LABEL = 400
const WIDTH = 860
const BAR = WIDTH - LABEL - 110
const HEAD = 56

/** A picture of the figures that have something beside them: one bar each, as long as its ratio, and a line at 1x. */
export const drawFigures = (report: Report): string => {
  const figures = report.figures.filter(({ ratio }) => ratio !== undefined)
  const largest = Math.max(1, ...figures.map(({ ratio = 0 }) => ratio))
  const height = HEAD + figures.length * ROW + 12
  const one = LABEL + BAR / largest
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13" role="img">
<title>Figures of ${report.at.slice(0, 10)}, as a ratio to what was measured beside them</title>
<style>text { fill: #24292f } .note { fill: #57606a; font-size: 11px } @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .note { fill: #9198a1 } }</style>
<text x="0" y="18" font-weight="600">Ratio to the floor or peer of the same run</text>
<text x="0" y="36" class="note">${escapeText(`${report.cpu}, ${report.cores} cores, Node ${report.node}, ${report.at.slice(0, 10)}`)}</text>
${figures.map((figure, index) => drawRow(figure, HEAD + index * ROW, largest)).join('\n')}
<line x1="${one.toFixed(1)}" x2="${one.toFixed(1)}" y1="${HEAD - 8}" y2="${height - 8}" stroke="#8c959f" stroke-dasharray="3 3"/>
<text x="${(one + 4).toFixed(1)}" y="${HEAD - 10}" class="note">1x</text>
</svg>
`
}

const drawRow = (
  { name, value, unit, ratio = 0, floor, met, load }: MeasuredFigure,
  y: number,
  largest: number,
): string => {
  const length = Math.max(1, (BAR * ratio) / largest).toFixed(1)
  const color = met === false ? '#bc4c00' : '#0969da'
  const better = unit === '/s' ? ', more is better' : ''
  const beside = `${value.toPrecision(3)} ${unit} beside ${floor?.value.toPrecision(3)} of ${floor?.name}, load ${load.toFixed(0)}${better}`
  return `<text x="0" y="${y + 12}">${escapeText(name)}</text>
<text x="0" y="${y + 26}" class="note">${escapeText(beside)}</text>
<rect x="${LABEL}" y="${y + 3}" width="${length}" height="16" rx="2" fill="${color}"/>
<text x="${(LABEL + Number(length) + 6).toFixed(1)}" y="${y + 16}">${ratio.toFixed(2)}x</text>`
}

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
