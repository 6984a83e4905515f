import { createBlobs } from '../../src/store/blob-store.ts'

/** For runtimes without a daemon: nothing is deleted, so nobody counts. */
export const blobsWithoutStore = (directory: string) =>
  createBlobs(directory, { holdBlob: async () => {}, isBlobUsed: async () => true })
