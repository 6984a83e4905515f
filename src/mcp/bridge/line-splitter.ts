/** Splits a byte stream into lines. Line ends are removed and empty lines are skipped. */
export const createLineSplitter = (onLine: (line: Buffer) => void): ((chunk: Buffer) => void) => {
  let parts: Buffer[] = []
  return chunk => {
    let from = 0
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      const piece = chunk.subarray(from, at)
      from = at + 1
      const line = trimEnd(parts.length === 0 ? piece : Buffer.concat([...parts, piece]))
      parts = []
      if (line.length > 0) onLine(line)
    }
    if (from < chunk.length) parts.push(chunk.subarray(from))
  }
}

const trimEnd = (line: Buffer): Buffer => {
  let end = line.length
  while (end > 0 && (line[end - 1] === 13 || line[end - 1] === 32)) end -= 1
  return line.subarray(0, end)
}
