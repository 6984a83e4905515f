/**
 * Expands `{a,b}` groups, nested or not, in the order of a shell. Returns undefined for more than `max` alternatives.
 * Braces that are escaped, inside `[…]` or unbalanced are ordinary characters.
 */
export const expandBraces = (glob: string, max: number): string[] | undefined => {
  const group = findGroup(glob)
  if (group === undefined) return [glob]
  const tails = expandBraces(glob.slice(group.end + 1), max)
  if (tails === undefined) return undefined
  const head = glob.slice(0, group.start)
  const expanded: string[] = []
  for (const part of group.parts) {
    const middles = expandBraces(part, max)
    if (middles === undefined || expanded.length + middles.length * tails.length > max) return undefined
    for (const middle of middles) for (const tail of tails) expanded.push(head + middle + tail)
  }
  return expanded
}

interface Group {
  readonly start: number
  readonly end: number
  readonly parts: readonly string[]
}

/** Finds the first group at the top level. */
const findGroup = (glob: string): Group | undefined => {
  const open: number[] = []
  let commas: number[] = []
  let found: Group | undefined
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at]
    if (char === '\\') at++
    else if (char === '[') at = Math.max(at, glob.indexOf(']', at + 2))
    else if (char === '{') {
      if (open.length === 0) commas = []
      open.push(at)
    } else if (char === ',' && open.length === 1) commas.push(at)
    else if (char === '}' && open.length > 0) {
      const start = open.pop()!
      if (open.length === 0) {
        found = { start, end: at, parts: between(glob, [start, ...commas, at]) }
        break
      }
    }
  }
  return found
}

const between = (text: string, marks: readonly number[]): string[] =>
  marks.slice(1).map((mark, index) => text.slice(marks[index]! + 1, mark))
