import type { Readable } from 'node:stream'
import { isSafePath } from '../jobs/paths.ts'

/** An entry of a workspace that is not a directory, as reported by the machine. */
export interface ListedFile {
  /** Relative to the workspace. */
  readonly path: string
  readonly type: 'file' | 'link' | 'other'
  readonly size: number
  readonly mode: number
  /** Modification time in whole seconds. */
  readonly modified?: number
}

export interface Listing {
  readonly files: readonly ListedFile[]
  /** Whether entries are missing. */
  readonly truncated: boolean
  /** Number of files whose names are not valid UTF-8. They cannot be shown or requested. */
  readonly unnamed: number
}

const MAX_ENTRIES = 200_000
const MAX_BYTES = 64 * 1024 * 1024
/** A path has at most 4096 bytes. */
const MAX_RECORD = 64 * 1024
/** Beyond MAX_BYTES the list is read and dropped up to this size, because the next answer follows it. */
const MAX_DROPPED = 1024 * 1024 * 1024

/**
 * Reads the answer to `listScript`: NUL-terminated records, then an empty one. The content is untrusted. From a list
 * that is too long, keeps the beginning and the wanted files.
 */
export const readListing = (
  source: Readable,
  signal: AbortSignal,
  isWanted: (path: string) => boolean = () => false,
): Promise<Listing> =>
  new Promise((resolve, reject) => {
    const files: ListedFile[] = []
    let held: Buffer = Buffer.alloc(0)
    let bytes = 0
    let unnamed = 0
    let truncated = false
    const finish = (settle: () => void) => {
      source.off('data', onData)
      source.off('end', onEnd)
      source.off('close', onEnd)
      signal.removeEventListener('abort', onAbort)
      source.pause()
      settle()
    }
    const add = (bytes: Buffer) => {
      const record = decode(bytes)
      const file = record === undefined ? undefined : parseRecord(record)
      if (record === undefined) unnamed++
      if (file !== undefined && (!truncated || (files.length < 2 * MAX_ENTRIES && isWanted(file.path))))
        files.push(file)
    }
    const onEnd = () => finish(() => reject(new Error('the machine ended while its files were listed')))
    const onAbort = () => finish(() => reject(signal.reason))
    const onData = (chunk: Buffer) => {
      bytes += chunk.length
      const buffer = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      let from = 0
      for (let end = buffer.indexOf(0); end !== -1; end = buffer.indexOf(0, from)) {
        if (end === from) return finish(() => resolve({ files, truncated, unnamed }))
        truncated ||= bytes > MAX_BYTES || files.length >= MAX_ENTRIES
        add(buffer.subarray(from, end))
        from = end + 1
      }
      held = buffer.subarray(from)
      if (bytes > MAX_DROPPED || held.length > MAX_RECORD)
        finish(() => reject(new Error('the list of files has no end')))
    }
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    source.on('data', onData)
    source.on('end', onEnd)
    source.on('close', onEnd)
    source.resume()
  })

/** Parses the same list, complete or not; a list without the empty record at its end is truncated. */
export const parseListing = (bytes: Buffer): Listing => {
  const files: ListedFile[] = []
  let unnamed = 0
  let from = 0
  for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
    if (end === from) return { files, truncated: false, unnamed }
    if (files.length === MAX_ENTRIES) break
    const record = decode(bytes.subarray(from, end))
    const file = record === undefined ? undefined : parseRecord(record)
    if (record === undefined) unnamed++
    if (file !== undefined) files.push(file)
    from = end + 1
  }
  return { files, truncated: true, unnamed }
}

const RECORD = /^(\S) (\d{1,15}) ([0-7]{1,5}) (-?\d{1,15})(?:\.\d*)? (.+)$/s
const utf8 = new TextDecoder('utf-8', { fatal: true })

const parseRecord = (record: string): ListedFile | undefined => {
  const match = RECORD.exec(record)
  if (match === null) return undefined
  const path = match[5]!
  if (!isSafePath(path)) return undefined
  const type = match[1] === 'f' ? 'file' : match[1] === 'l' ? 'link' : 'other'
  return {
    path,
    type,
    size: Number(match[2]),
    mode: Number.parseInt(match[3]!, 8),
    modified: Number(match[4]),
  }
}

const decode = (bytes: Buffer): string | undefined => {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}
