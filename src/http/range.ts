/** Both ends included, as in HTTP. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Parses one byte range. Everything that HTTP lets a server ignore (other units, several ranges, invalid syntax) is
 * ignored, and the response is the whole file.
 */
export const parseRange = (header: string | null, size: number): ByteRange | 'unsatisfiable' | undefined => {
  const match = header === null ? null : /^bytes= *(\d{0,15})-(\d{0,15}) *$/i.exec(header)
  if (match === null) return undefined
  const [, first = '', last = ''] = match
  if (first === '' && last === '') return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}
