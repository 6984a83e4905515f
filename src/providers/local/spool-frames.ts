/**
 * The log of a job is a sequence of frames: the bytes printed, the stream, the time, and the
 * offset in the whole output, from which a reader can continue.
 */
export const FRAME_HEADER_BYTES = 24

export type FrameKind = 'stdout' | 'stderr' | 'progress'

export interface Frame {
  readonly kind: FrameKind
  readonly at: number
  /** Bytes of output, of both streams, before this frame. */
  readonly offset: number
  readonly data: Buffer
}

const KINDS: readonly FrameKind[] = ['stdout', 'stderr', 'progress']

export const encodeHeader = (frame: Omit<Frame, 'data'>, length: number): Buffer => {
  const header = Buffer.alloc(FRAME_HEADER_BYTES)
  header.writeUInt32LE(length, 0)
  header.writeUInt32LE(KINDS.indexOf(frame.kind), 4)
  header.writeDoubleLE(frame.at, 8)
  header.writeDoubleLE(frame.offset, 16)
  return header
}

/** The offset in the header at this position. */
export const readOffset = (buffer: Buffer, at = 0): number => buffer.readDoubleLE(at + 16)

/** Decodes the complete frames at the beginning of `buffer`. `bytes` is their total size. */
export const decodeFrames = (buffer: Buffer): { frames: Frame[]; bytes: number } => {
  const frames: Frame[] = []
  let bytes = 0
  while (buffer.length - bytes >= FRAME_HEADER_BYTES) {
    const length = buffer.readUInt32LE(bytes)
    const end = bytes + FRAME_HEADER_BYTES + length
    if (end > buffer.length) break
    frames.push({
      kind: KINDS[buffer.readUInt32LE(bytes + 4)] ?? 'stderr',
      at: buffer.readDoubleLE(bytes + 8),
      offset: readOffset(buffer, bytes),
      data: buffer.subarray(bytes + FRAME_HEADER_BYTES, end),
    })
    bytes = end
  }
  return { frames, bytes }
}
