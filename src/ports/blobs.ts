import type { BlobRef } from '../jobs/job.ts'

/** Content-addressed files. */
export interface Blobs {
  /** Stores a stream; throws `too_large` past the limit and keeps nothing. */
  put(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<BlobRef>
  /** Takes over a finished file on the same disk. */
  adopt(path: string, ref: BlobRef): Promise<void>
  has(sha256: string): Promise<boolean>
  read(sha256: string, range?: { start: number; end: number }): AsyncIterable<Uint8Array>
  /** The file itself, for a runtime that hands it to a process. */
  path(sha256: string): string
  remove(sha256: string): Promise<void>
  /** Removes what an earlier daemon had begun to store. Only before anything is stored. */
  removeUnfinished(): Promise<void>
  /** Every stored blob, for the sweep of unreferenced ones. */
  list(): AsyncIterable<{ sha256: string; size: number; modifiedAt: number }>
}
