import { closeSync, ftruncateSync, openSync, unlinkSync, writevSync } from 'node:fs'
import { join } from 'node:path'
import { encodeHeader, FRAME_HEADER_BYTES, type FrameKind } from './spool-frames.ts'

export interface Spool {
  /** All bytes printed so far, dropped ones included. */
  readonly outputBytes: number
  write(kind: FrameKind, data: Uint8Array, at: number): void
  close(): void
}

interface Segment {
  readonly path: string
  payload: number
}

const SEGMENTS_OF_TAIL = 4
/** Frames larger than this are split: a reader never needs a larger buffer. */
export const MAX_FRAME_BYTES = 256 * 1024
/** One-byte frames are mostly header: a file ends here too, so that the disk stays bounded. */
const LOG_BYTES_PER_PAYLOAD_BYTE = 4

/**
 * Writes the framed log of one job into `dir`, in files named by the position they start at. The first holds the
 * head of the output; after it come small segments of which only the newest are kept. Writing is synchronous: the
 * pipe of the job is the only buffer, and a full disk costs output, never the job.
 */
export const openSpool = (dir: string, keep: { head: number; tail: number }): Spool => {
  const segmentBytes = Math.max(1, Math.ceil(keep.tail / SEGMENTS_OF_TAIL))
  const tail: Segment[] = []
  let end = 0
  let outputBytes = 0
  let fileStart = 0
  let room = keep.head
  let file = create(dir, 0)

  const rotate = () => {
    closeSync(file)
    fileStart = end
    room = segmentBytes
    file = create(dir, end)
    tail.push({ path: spoolFile(dir, end), payload: 0 })
    let kept = tail.reduce((sum, segment) => sum + segment.payload, 0)
    while (tail.length > SEGMENTS_OF_TAIL + 1 || (tail.length > 1 && kept - tail[0]!.payload >= keep.tail)) {
      const oldest = tail.shift()!
      kept -= oldest.payload
      unlinkSync(oldest.path)
    }
  }

  const append = (kind: FrameKind, data: Uint8Array, at: number) => {
    const limit = tail.length === 0 ? keep.head : segmentBytes
    if (room <= 0 || end - fileStart >= LOG_BYTES_PER_PAYLOAD_BYTE * limit + FRAME_HEADER_BYTES) rotate()
    const header = encodeHeader({ kind, at, offset: outputBytes }, data.length)
    const size = header.length + data.length
    if (!writeWhole(file, [header, data], size, end - fileStart)) return
    end += size
    room -= data.length
    const segment = tail.at(-1)
    if (segment !== undefined) segment.payload += data.length
  }

  return {
    get outputBytes() {
      return outputBytes
    },
    write: (kind, data, at) => {
      for (let from = 0; from < data.length; from += MAX_FRAME_BYTES) {
        const piece = data.subarray(from, from + MAX_FRAME_BYTES)
        try {
          append(kind, piece, at)
        } catch {
          // No room for a new file: these bytes are counted like the dropped middle.
        }
        if (kind !== 'progress') outputBytes += piece.length
      }
    },
    close: () => closeSync(file),
  }
}

export const spoolFile = (dir: string, start: number): string =>
  join(dir, `log.${String(start).padStart(15, '0')}`)

const create = (dir: string, start: number): number => openSync(spoolFile(dir, start), 'w', 0o600)

/** A frame is in the file as a whole or not at all. */
const writeWhole = (file: number, parts: Uint8Array[], size: number, at: number): boolean => {
  try {
    if (writevSync(file, parts, at) === size) return true
  } catch {
    // A full disk: fall through and undo what was written.
  }
  ftruncateSync(file, at)
  return false
}
