import { LIMITS } from '../jobs/limits.ts'

export const PROGRESS_MARK = '::progress::'
const MARK = PROGRESS_MARK

/** Finds `::progress:: text` lines in one stream. They stay in the output. */
export const createProgressScanner = (onProgress: (text: string) => void): ((chunk: Buffer) => void) => {
  // The incomplete line, up to the maximum length; undefined when it is not a progress line.
  let line: string | undefined = ''
  const add = (text: string) => {
    if (line === undefined) return
    line = (line + text).slice(0, MARK.length + LIMITS.progressBytes)
    const common = Math.min(line.length, MARK.length)
    if (line.slice(0, common) !== MARK.slice(0, common)) line = undefined
  }
  const finish = () => {
    if (line?.startsWith(MARK)) onProgress(cleanProgress(line.slice(MARK.length)))
    line = ''
  }
  return chunk => {
    // Most chunks contain no mark: check only their first and last line.
    if (!chunk.includes(MARK)) {
      const first = chunk.indexOf(10)
      if (first === -1) return add(chunk.toString('latin1'))
      add(chunk.toString('latin1', 0, first))
      finish()
      return add(chunk.toString('latin1', chunk.lastIndexOf(10) + 1))
    }
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      add(chunk.toString('latin1', from, end))
      finish()
      from = end + 1
    }
    add(chunk.toString('latin1', from))
  }
}

/** Collected as bytes; shown as one line of text. */
const cleanProgress = (bytes: string): string =>
  Buffer.from(bytes, 'latin1')
    .toString('utf8')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
    .replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .trim()
    .slice(0, LIMITS.progressBytes)
