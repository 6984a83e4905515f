import { visible } from '../../jobs/visible-text.ts'

export interface Column<T> {
  readonly title: string
  readonly value: (row: T) => string
  readonly paint?: (text: string, row: T) => string
  readonly align?: 'right'
  /** Gets the rest of the line and is truncated to it. */
  readonly rest?: boolean
}

/** Aligned columns for people. Values come from jobs, so they are made safe first. */
export const table = <T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  options: { width: number; heading: (text: string) => string },
): string => {
  const cells = rows.map(row => columns.map(column => visible(column.value(row))))
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...cells.map(line => displayWidth(line[index] ?? ''))),
  )
  const fixed = columns.reduce((sum, column, index) => sum + (column.rest ? 0 : widths[index]! + 2), 0)
  const room = Math.max(12, options.width - fixed)
  const format = (values: readonly string[], paint: (text: string, index: number) => string): string =>
    columns
      .map((column, index) => {
        const text = values[index] ?? ''
        const width = column.rest ? Math.min(widths[index]!, room) : widths[index]!
        const cut = displayWidth(text) > width ? `${text.slice(0, width - 1)}…` : text
        const space = ' '.repeat(Math.max(0, width - displayWidth(cut)))
        return column.align === 'right' ? space + paint(cut, index) : paint(cut, index) + space
      })
      .join('  ')
      .trimEnd()
  const heading = format(
    columns.map(column => column.title),
    text => options.heading(text),
  )
  const lines = cells.map((line, row) =>
    format(line, (text, index) => columns[index]?.paint?.(text, rows[row]!) ?? text),
  )
  return `${[heading, ...lines].join('\n')}\n`
}

/** Good enough for a table: wide East Asian characters and emoji take two places. */
const displayWidth = (text: string): number => {
  let width = 0
  for (const char of text) width += WIDE.test(char) ? 2 : 1
  return width
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
