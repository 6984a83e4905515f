import { AppError } from '../../jobs/errors.ts'

const HEADER = 8
/** More than an engine sends at once; something else is speaking. */
const MAX_FRAME = 64 * 1024 * 1024

/**
 * Splits what an engine sends for a process without a terminal: 8 bytes (stream, three zeros, length, big-endian), then
 * that many bytes. Data is handed on as it arrives, not frame by frame.
 */
export const createStreamReader = (
  onData: (stream: 'stdout' | 'stderr', data: Buffer) => void,
): ((chunk: Buffer) => void) => {
  let header = Buffer.alloc(0)
  let stream: 'stdout' | 'stderr' = 'stdout'
  let left = 0
  return chunk => {
    let rest = chunk
    while (rest.length > 0) {
      if (left > 0) {
        const data = rest.subarray(0, left)
        left -= data.length
        rest = rest.subarray(data.length)
        onData(stream, data)
        continue
      }
      const missing = HEADER - header.length
      header = Buffer.concat([header, rest.subarray(0, missing)])
      rest = rest.subarray(missing)
      if (header.length < HEADER) return
      const [kind = 0] = header
      left = header.readUInt32BE(4)
      if (kind > 2 || left > MAX_FRAME)
        throw new AppError('unavailable', 'The container engine sent a stream that cannot be read.')
      stream = kind === 2 ? 'stderr' : 'stdout'
      header = Buffer.alloc(0)
    }
  }
}
