/** Splits a stream into lines. A line longer than `max` is truncated. */
export const createLineReader = (max: number, onLine: (line: string) => void): ((chunk: Buffer) => void) => {
  let held: Buffer = Buffer.alloc(0)
  let overlong = false
  return chunk => {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([held, chunk.subarray(from, end)])
      held = Buffer.alloc(0)
      from = end + 1
      if (!overlong) onLine(line.subarray(0, max).toString('utf8'))
      overlong = false
    }
    if (overlong) return
    held = Buffer.concat([held, chunk.subarray(from)])
    if (held.length <= max) return
    onLine(held.subarray(0, max).toString('utf8'))
    held = Buffer.alloc(0)
    overlong = true
  }
}
