// The same small faults in shell programs. Comments and strings of other programs are not told apart: a mutant that
// changes nothing survives and is seen as such by its reader.
const SWAPS = [
  [/ -lt /g, ' -le '],
  [/ -le /g, ' -lt '],
  [/ -gt /g, ' -ge '],
  [/ -ge /g, ' -gt '],
  [/ = (?=\S+ \])/g, ' != '],
  [/ != (?=\S+ \])/g, ' = '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/\[ ! /g, '[ '],
  [/\[ -([ezfrsdn]) /g, '[ ! -$1 '],
]
const CALLS = /^(\s*)(?:mv|rm|kill|sync|mkdir|exec|cd|echo|printf|wait|touch) .*[^\\|&{(;]$/

/** Each mutant replaces the text from `start` to `end`. */
export const shellMutantsOf = source => {
  const found = []
  let start = 0
  for (const [index, line] of source.split('\n').entries()) {
    const add = (from, to, text, what) =>
      found.push({ start: start + from, end: start + to, text, what, line: index + 1 })
    if (!/^\s*#/.test(line)) {
      for (const [pattern, swap] of SWAPS)
        for (const match of line.matchAll(pattern)) {
          const text = swap.replace('$1', match[1])
          add(match.index, match.index + match[0].length, text, `${match[0].trim()} → ${text.trim()}`)
        }
      const call = CALLS.exec(line)
      if (call) add(call[1].length, line.length, ':', 'leave out the call')
    }
    start += line.length + 1
  }
  return found
}
