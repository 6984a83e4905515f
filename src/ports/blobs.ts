import type { BlobRef } from '../jobs/job.ts'

/**
 * Content-addressed files. Each store call names a holder, the id of a job. Until that job is written to the database
 * with its references, or for an hour, the file is not removed, even when another job with the same content is
 * deleted. A stored file is flushed to disk.
 */
export interface Blobs {
  /** Stores a stream; throws `too_large` past the limit and keeps nothing. */
  put(source: AsyncIterable<Uint8Array>, maxBytes: number, holder: string): Promise<BlobRef>
  /** Stores a finished file by hard link or copy. Does not remove the original. */
  adopt(path: string, ref: BlobRef, holder: string): Promise<void>
  /** Holds a stored blob for the holder; false when the blob does not exist. */
  hold(sha256: string, holder: string): Promise<boolean>
  read(sha256: string, range?: { start: number; end: number }): AsyncIterable<Uint8Array>
  /** Makes a file that another daemon has stored available under its path. Does nothing when there is none. */
  fetch(sha256: string): Promise<void>
  /** Path of the file, for a provider that passes it to a process. */
  path(sha256: string): string
  /** Removes the blob unless a job refers to it or a holder holds it. */
  removeUnused(sha256: string): Promise<void>
  /** Removes incomplete files of an earlier daemon. Call it before anything is stored. */
  removeUnfinished(): Promise<void>
  /** Lists the hashes of all stored blobs, for the sweep of unreferenced ones. */
  list(): AsyncIterable<string>
}
