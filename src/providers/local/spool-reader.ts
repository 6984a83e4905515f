import { type FileHandle, open, readdir } from 'node:fs/promises'
import { MAX_FRAME_BYTES, spoolFile } from './spool.ts'
import { decodeFrames, FRAME_HEADER_BYTES, type Frame } from './spool-frames.ts'

export interface SpoolReader {
  readonly position: number
  /** Returns the next complete frames, or none at the current end of the log. */
  next(): Promise<Frame[]>
  close(): Promise<void>
}

const BUFFER_BYTES = MAX_FRAME_BYTES + FRAME_HEADER_BYTES

/** Reads the log in `dir` from a position while it is written. Skips segments that were dropped. */
export const openSpoolReader = (dir: string, from: number): SpoolReader => {
  let position = from
  let file: { handle: FileHandle; start: number } | undefined
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES)

  const close = async () => {
    const handle = file?.handle
    file = undefined
    await handle?.close()
  }

  const read = async (): Promise<Frame[]> => {
    if (file === undefined) return []
    const { bytesRead } = await file.handle.read(buffer, 0, BUFFER_BYTES, position - file.start)
    const { frames, bytes } = decodeFrames(Buffer.from(buffer.subarray(0, bytesRead)))
    position += bytes
    return frames
  }

  const nextSegment = async (): Promise<number | undefined> => {
    const starts = await listStarts(dir)
    const current = file?.start
    if (current === undefined) return starts.findLast(start => start <= position) ?? starts[0]
    return starts.find(start => start > current)
  }

  const moveTo = async (start: number): Promise<void> => {
    const handle = await open(spoolFile(dir, start), 'r').catch(ignoreMissing)
    if (handle === undefined) return // The segment was dropped since it was listed; the next listing has a newer one.
    await close()
    file = { handle, start }
    if (start > position) position = start
  }

  return {
    get position() {
      return position
    },
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
