import { type FileHandle, open, readdir } from 'node:fs/promises'
import { MAX_FRAME_BYTES, spoolFile } from './spool.ts'
import { decodeFrames, FRAME_HEADER_BYTES, type Frame, readOffset } from './spool-frames.ts'

export interface SpoolReader {
  /** Returns the next complete frames, or none at the current end of the log. */
  next(): Promise<Frame[]>
  close(): Promise<void>
}

const BUFFER_BYTES = MAX_FRAME_BYTES + FRAME_HEADER_BYTES

/** Reads the log in `dir` from an offset of the output while it is written. Skips segments that were dropped. */
export const openSpoolReader = (dir: string, from: number): SpoolReader => {
  let file: { handle: FileHandle; start: number; read: number } | undefined
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES)

  const close = async () => {
    const handle = file?.handle
    file = undefined
    await handle?.close()
  }

  /** Frames that follow in the current segment; those before `from` are left out. */
  const read = async (): Promise<Frame[]> => {
    for (;;) {
      if (file === undefined) return []
      const { bytesRead } = await file.handle.read(buffer, 0, BUFFER_BYTES, file.read)
      const { frames, bytes } = decodeFrames(Buffer.from(buffer.subarray(0, bytesRead)))
      file.read += bytes
      const wanted = frames.flatMap(frame => after(frame, from))
      if (wanted.length > 0 || frames.length === 0) return wanted
    }
  }

  const nextSegment = async (): Promise<number | undefined> => {
    const starts = await listStarts(dir)
    const current = file?.start
    if (current !== undefined) return starts.find(start => start > current)
    for (const start of starts.slice(1).reverse())
      if (((await firstOffset(dir, start)) ?? Number.POSITIVE_INFINITY) <= from) return start
    return starts[0]
  }

  const moveTo = async (start: number): Promise<void> => {
    const handle = await open(spoolFile(dir, start), 'r').catch(ignoreMissing)
    if (handle === undefined) return // The segment was dropped since it was listed; the next listing has a newer one.
    await close()
    file = { handle, start, read: 0 }
  }

  return {
    next: async () => {
      for (;;) {
        const frames = await read()
        if (frames.length > 0) return frames
        const start = await nextSegment()
        if (start === undefined) return []
        // A newer segment exists, so this one is complete, but it may have grown since the last read.
        const rest = await read()
        if (rest.length > 0) return rest
        await moveTo(start)
      }
    },
    close,
  }
}

/** The part of a frame that is not before `from`. */
const after = (frame: Frame, from: number): Frame[] => {
  const before = from - frame.offset
  if (before <= 0) return [frame]
  if (frame.kind === 'progress' || before >= frame.data.length) return []
  return [{ ...frame, offset: from, data: frame.data.subarray(before) }]
}

/** The offset of the first frame of a segment; undefined when the segment is empty or was dropped. */
const firstOffset = async (dir: string, start: number): Promise<number | undefined> => {
  const handle = await open(spoolFile(dir, start), 'r').catch(ignoreMissing)
  if (handle === undefined) return undefined
  try {
    const header = Buffer.alloc(FRAME_HEADER_BYTES)
    const { bytesRead } = await handle.read(header, 0, header.length, 0)
    return bytesRead < header.length ? undefined : readOffset(header)
  } finally {
    await handle.close()
  }
}

const listStarts = async (dir: string): Promise<number[]> => {
  const names = (await readdir(dir).catch(ignoreMissing)) ?? []
  return names
    .filter(name => name.startsWith('log.'))
    .map(name => Number(name.slice(4)))
    .sort((a, b) => a - b)
}

const ignoreMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
