/** Draws coloured terminal output as an SVG: only the few SGR codes that our own command line uses. */
export const terminalSvg = (text, { title, columns = 104 }) => {
  const lines = text.replace(/\n$/, '').split('\n').map(parseLine)
  const width = Math.round(columns * CHAR + 2 * PAD)
  const height = Math.round(lines.length * LINE + BAR + 2 * PAD)
  const rows = lines.map((spans, index) => {
    const y = (BAR + PAD + (index + 0.75) * LINE).toFixed(1)
    const body = spans.map(span => `<tspan${attributes(span)}>${xml(span.text)}</tspan>`).join('')
    return `<text x="${PAD}" y="${y}" xml:space="preserve">${body}</text>`
  })
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (color, index) => `<circle cx="${20 + index * 20}" cy="${BAR / 2}" r="6" fill="${color}"/>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${xml(title)}">
<rect width="${width}" height="${height}" rx="10" fill="#16181d"/>
<path d="M0 ${BAR}V10a10 10 0 0 1 10-10h${width - 20}a10 10 0 0 1 10 10v${BAR - 10}z" fill="#23262e"/>
${dots.join('')}
<text x="${width / 2}" y="${BAR / 2 + 5}" text-anchor="middle" fill="#8b92a1" font-family="${FONT}" font-size="13">${xml(title)}</text>
<g font-family="${FONT}" font-size="${SIZE}" fill="#d7dae0">
${rows.join('\n')}
</g>
</svg>
`
}

const SIZE = 14
const CHAR = 8.43
const LINE = 19.5
const PAD = 20
const BAR = 36
const FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

const COLORS = { 31: '#f07178', 32: '#98c379', 33: '#e5c07b', 34: '#61afef', 36: '#56b6c2' }

const parseLine = line => {
  const spans = []
  let style = {}
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
    const code = /^\x1b\[([0-9;]*)m$/.exec(part)?.[1]
    if (code !== undefined) style = next(style, code)
    else if (part !== '') spans.push({ ...style, text: part })
  }
  return spans
}

const next = (style, code) => {
  if (code === '' || code === '0') return {}
  if (code === '1') return { ...style, bold: true }
  if (code === '2') return { ...style, dim: true }
  if (code === '22') return { ...style, bold: false, dim: false }
  return { ...style, color: COLORS[code] }
}

const attributes = ({ color, bold, dim }) =>
  [color ? ` fill="${color}"` : dim ? ' fill="#7d8494"' : '', bold ? ' font-weight="bold"' : ''].join('')

const xml = text =>
  text.replace(/[&<>"]/g, char => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[char])
