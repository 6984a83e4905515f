/**
 * The log a shim keeps of one job is a sequence of frames: what was printed, on which stream, when, and at which
 * offset of the whole output. A reader that knows a position (the byte after a frame) can go on from there.
 */
export const FRAME_HEADER_BYTES = 24

export type FrameKind = 'stdout' | 'stderr' | 'progress'

export interface Frame {
  readonly kind: FrameKind
  readonly at: number
  /** Bytes of output, of both streams, before this frame. */
  readonly offset: number
  readonly data: Uint8Array
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

/** All complete frames at the beginning of `buffer`, and how many bytes they take. */
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
      offset: buffer.readDoubleLE(bytes + 16),
      data: buffer.subarray(bytes + FRAME_HEADER_BYTES, end),
    })
    bytes = end
  }
  return { frames, bytes }
}
