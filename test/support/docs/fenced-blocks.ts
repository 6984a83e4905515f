export interface FencedBlock {
  readonly line: number
  readonly language: string
  readonly text: string
  /** Why the block is not run, from `<!-- not run: REASON -->` above it, which readers do not see. */
  readonly notRun?: string
}

/** The fenced blocks of a Markdown page. */
export const fencedBlocks = (page: string): FencedBlock[] => {
  const blocks: FencedBlock[] = []
  let above = ''
  let open: { line: number; language: string; lines: string[] } | undefined
  for (const [index, line] of page.split('\n').entries()) {
    if (open !== undefined && line.trim() === '```') {
      const notRun = /^<!-- not run: (\S.*) -->$/.exec(above)?.[1]
      const { lines, ...block } = open
      blocks.push({ ...block, text: lines.join('\n'), ...(notRun !== undefined && { notRun }) })
      open = undefined
      above = ''
    } else if (open !== undefined) open.lines.push(line)
    else if (line.trim().startsWith('```'))
      open = { line: index + 1, language: line.trim().slice(3), lines: [] }
    else if (line.trim() !== '') above = line.trim()
  }
  return blocks
}
