const NEWLINE = 10

/** Returns the part of the data that ends with a complete line, or with a complete character where it has no line. */
export const upToLastLine = (data: Uint8Array): Uint8Array => {
  const end = data.lastIndexOf(NEWLINE) + 1
  return data.subarray(0, end > 0 ? end : data.length - incompleteTail(data))
}

/** Returns the part of the data that starts with a complete line, or with a complete character where it has no line. */
export const fromFirstLine = (data: Uint8Array): Uint8Array => {
  const start = data.indexOf(NEWLINE) + 1
  // Ignore a newline at the very end: cutting there would keep nothing of a long last line.
  return start > 0 && start < data.length ? data.subarray(start) : fromFirstCharacter(data)
}

/** Drops a partial character at the start. */
export const fromFirstCharacter = (data: Uint8Array): Uint8Array => {
  let start = 0
  while (start < 3 && start < data.length && (data[start]! & 0xc0) === 0x80) start += 1
  return data.subarray(start)
}

/** Counts the bytes of an incomplete character at the end. */
export const incompleteTail = (data: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? back : 0
  }
  return 0
}

/** Puts a beginning and an end together, with the number of bytes omitted in between on a line of its own. */
export const aroundOmission = (head: Uint8Array, omitted: number, tail: Uint8Array): string => {
  const start = text(head)
  const separator = start === '' || start.endsWith('\n') ? '' : '\n'
  return `${start}${separator}[… ${omitted} bytes omitted …]\n${text(tail)}`
}

/** Decodes UTF-8. A byte order mark is part of the output. */
export const text = (data: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(data)
