import type { Readable } from 'node:stream'
import { isSafePath } from '../../jobs/paths.ts'

/** One thing in a workspace that is not a directory, as the machine told it. */
export interface ListedFile {
  /** Relative to the workspace. */
  readonly path: string
  readonly type: 'file' | 'link' | 'other'
  readonly size: number
  readonly mode: number
  /** When it was changed last, in whole seconds. */
  readonly modified?: number
}

export interface Listing {
  readonly files: readonly ListedFile[]
  /** Set when the list is not the whole of it. */
  readonly truncated: boolean
  /** How many have names that are no UTF-8: they cannot be shown or asked for, and stay behind. */
  readonly unnamed: number
}

const MAX_ENTRIES = 200_000
const MAX_BYTES = 64 * 1024 * 1024
/** A path has at most 4096 bytes. */
const MAX_RECORD = 64 * 1024
/** What comes beyond that is read and dropped, up to here: the answer to the next request begins behind it. */
const MAX_DROPPED = 1024 * 1024 * 1024

/**
 * Reads the answer to `listText`: records ended by NUL, the list by an empty one. Nothing in it is trusted. Of a list
 * that is too long the beginning is kept, and what is wanted.
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

const RECORD = /^(\S) (\d{1,15}) ([0-7]{1,5}) (-?\d{1,15})(?:\.\d+)? (.+)$/s
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
