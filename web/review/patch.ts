export interface FilePatch {
  readonly path: string
  readonly added: number
  readonly removed: number
  readonly lines: readonly PatchLine[]
}

export interface PatchLine {
  readonly kind: 'added' | 'removed' | 'hunk' | 'same' | 'note'
  /** Without the mark at its beginning. */
  readonly text: string
  /** Line numbers in the file before and after. */
  readonly before?: number
  readonly after?: number
}

/** A patch in git's form, file by file. */
export const parsePatch = (patch: string): FilePatch[] =>
  patch
    .split(/^(?=diff --git )/m)
    .filter(part => part.startsWith('diff --git '))
    .map(part => {
      const [head = '', ...rest] = part.replace(/\n$/, '').split('\n')
      const lines = readLines(rest)
      const count = (kind: PatchLine['kind']): number => lines.filter(line => line.kind === kind).length
      return { path: pathOf(head, rest), added: count('added'), removed: count('removed'), lines }
    })

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/

const readLines = (rest: readonly string[]): PatchLine[] => {
  const lines: PatchLine[] = []
  let before: number | undefined
  let after = 0
  for (const line of rest) {
    const hunk = HUNK.exec(line)
    const text = line.slice(1)
    if (hunk !== null) {
      before = Number(hunk[1])
      after = Number(hunk[2])
      lines.push({ kind: 'hunk', text: line })
    } else if (before === undefined) {
      if (!/^(index|---|\+\+\+) /.test(line)) lines.push({ kind: 'note', text: line })
    } else if (line.startsWith('+')) lines.push({ kind: 'added', text, after: after++ })
    else if (line.startsWith('-')) lines.push({ kind: 'removed', text, before: before++ })
    else if (line.startsWith('\\')) lines.push({ kind: 'note', text: line })
    else lines.push({ kind: 'same', text, before: before++, after: after++ })
  }
  return lines
}

/** From the line of the new file, else of the old one; binary files have neither. */
const pathOf = (head: string, rest: readonly string[]): string => {
  const named = (prefix: string): string | undefined =>
    rest.find(line => line.startsWith(prefix))?.slice(prefix.length)
  return named('+++ b/') ?? named('--- a/') ?? head.replace(/^diff --git (?:a\/)?/, '').split(' b/')[0]!
}

/** One row of the side-by-side view: a removed line stands beside the added line that replaces it. */
export interface Pair {
  readonly left?: PatchLine
  readonly right?: PatchLine
}

export const pairLines = (lines: readonly PatchLine[]): Pair[] => {
  const pairs: Pair[] = []
  let removed: PatchLine[] = []
  let added: PatchLine[] = []
  const flush = (): void => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++)
      pairs.push({ ...(removed[at] && { left: removed[at] }), ...(added[at] && { right: added[at] }) })
    removed = []
    added = []
  }
  for (const line of lines) {
    if (line.kind === 'removed') {
      if (added.length > 0) flush()
      removed.push(line)
    } else if (line.kind === 'added') added.push(line)
    else {
      flush()
      pairs.push({ left: line, right: line })
    }
  }
  flush()
  return pairs
}
