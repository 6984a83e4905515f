import type { BlobRef } from '../jobs/job.ts'

/**
 * Content-addressed files. Whoever stores one names a holder, the id of a job: until that job is written to the
 * database with its references, or for an hour, the file is not removed, whichever other job with the same content
 * is deleted meanwhile. A stored file is on disk.
 */
export interface Blobs {
  /** Stores a stream; throws `too_large` past the limit and keeps nothing. */
  put(source: AsyncIterable<Uint8Array>, maxBytes: number, holder: string): Promise<BlobRef>
  /** Stores a finished file, which stays where it is. */
  adopt(path: string, ref: BlobRef, holder: string): Promise<void>
  /** Keeps a stored one for the holder; false when there is none. */
  hold(sha256: string, holder: string): Promise<boolean>
  read(sha256: string, range?: { start: number; end: number }): AsyncIterable<Uint8Array>
  /** The file itself, for a runtime that hands it to a process. */
  path(sha256: string): string
  /** Removes it unless a job refers to it or somebody holds it. */
  removeUnused(sha256: string): Promise<void>
  /** Removes what an earlier daemon had begun to store. Only before anything is stored. */
  removeUnfinished(): Promise<void>
  /** Every stored blob, for the sweep of unreferenced ones. */
  list(): AsyncIterable<{ sha256: string; size: number; modifiedAt: number }>
}
