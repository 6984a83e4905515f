import { createHash } from 'node:crypto'
import type { ListedFile } from '../files/file-listing.ts'
import { toAppError } from '../jobs/errors.ts'
import type { BlobRef } from '../jobs/job.ts'
import type { Blobs } from '../ports.ts'
import type { SentFile, VisitFile } from './tar-files.ts'
import type { WorkspaceSource } from './workspace-source.ts'

/** Where collected files are stored. */
export type CollectedBlobs = Pick<Blobs, 'put' | 'hold' | 'read' | 'path'>

export interface FileReceiverOptions {
  readonly blobs: CollectedBlobs
  readonly jobId: string
  /** Memory for the contents needed for a patch; contents beyond it are only hashed. */
  readonly memoryBytes: number
  readonly storeBytes: number
  /** How much to ask for at once. */
  readonly batchBytes: number
}

export interface Destination {
  readonly into: 'store' | 'memory'
  /** The known digest of the original file; unchanged content is not kept. */
  readonly known?: string | undefined
}

export interface Received extends BlobRef {
  /** Absent if the content did not fit into memory. */
  content?(): Promise<Buffer>
}

/** The tar overhead of a file (header, long name, padding) and of the archive end. */
const TAR_FILE = 8192
const TAR_END = 64 * 1024
const BATCH_FILES = 2000

/**
 * Receives files from an untrusted machine: only requested ones, each once, only regular files, none larger than
 * listed. Names sent by a machine never become local paths.
 */
export const createFileReceiver = (options: FileReceiverOptions) => {
  const { blobs, jobId, batchBytes } = options
  const received = new Map<string, Received>()
  const refused = new Map<string, string>()
  let memory = options.memoryBytes
  let store = options.storeBytes

  const isSettled = (path: string): boolean => received.has(path) || refused.has(path)

  const take = async (
    { type, size, sameAs }: SentFile,
    content: AsyncIterable<Uint8Array>,
    listed: ListedFile,
    { into, known }: Destination,
  ): Promise<Received | string> => {
    if (type === 'hard-link') return again(received.get(sameAs), listed, into)
    if (type !== 'file') return 'it is no longer a regular file'
    if (!(size <= listed.size)) return 'it grew while it was collected'
    if (into === 'memory') return hold(content, size, known)
    if (size > store) return 'it is larger than what is left for artifacts'
    store -= size
    const ref = await blobs.put(content, size, jobId).catch(error => {
      store += size
      throw error
    })
    return { ...ref, content: () => readAll(blobs.read(ref.sha256)) }
  }

  /** Handles a hard link to a file that was already received. */
  const again = async (
    twin: Received | undefined,
    listed: ListedFile,
    into: Destination['into'],
  ): Promise<Received | string> => {
    if (twin === undefined || twin.size > listed.size)
      return 'it is a hard link to a file that was not received'
    if (into === 'store' && !(await blobs.hold(twin.sha256, jobId))) {
      const held = await twin.content?.()
      if (held === undefined) return 'it is a hard link to a file that was not received'
      await blobs.put(once(held), held.length, jobId)
    }
    return twin
  }

  const hold = async (
    content: AsyncIterable<Uint8Array>,
    size: number,
    known: string | undefined,
  ): Promise<Received> => {
    const room = size <= memory
    if (room) memory -= size
    const hash = createHash('sha256')
    const parts: Uint8Array[] = []
    for await (const chunk of content) {
      hash.update(chunk)
      if (room) parts.push(chunk)
    }
    const sha256 = hash.digest('hex')
    if (!room) return { sha256, size }
    if (sha256 !== known) {
      const held = Buffer.concat(parts)
      return { sha256, size, content: async () => held }
    }
    memory += size
    return { sha256, size }
  }

  const nextBatch = (files: readonly ListedFile[]): Map<string, ListedFile> => {
    const batch = new Map<string, ListedFile>()
    let bytes = 0
    for (const file of files) {
      if (isSettled(file.path)) continue
      if (batch.size > 0 && (bytes + file.size > batchBytes || batch.size === BATCH_FILES)) break
      batch.set(file.path, file)
      bytes += file.size
    }
    return batch
  }

  const refuseRest = (batch: ReadonlyMap<string, ListedFile>, reason: string): void => {
    for (const path of batch.keys()) if (!isSettled(path)) refused.set(path, reason)
  }

  return {
    received,
    /** Requested files that were not received, with the reason. */
    refused,
    /** Requests the files that are neither received nor refused yet. May be called again after a lost connection. */
    async fetch(
      source: WorkspaceSource,
      files: readonly ListedFile[],
      destination: (file: ListedFile) => Destination,
    ): Promise<void> {
      for (let batch = nextBatch(files); batch.size > 0; batch = nextBatch(files)) {
        const limit = [...batch.values()].reduce((sum, { size }) => sum + size + TAR_FILE, TAR_END)
        const paths = [...batch.keys()]
        const receive: VisitFile = async (file, content) => {
          const listed = batch.get(file.path)
          if (listed === undefined || isSettled(file.path)) return
          const taken = await take(file, content, listed, destination(listed))
          if (typeof taken === 'string') refused.set(file.path, taken)
          else received.set(file.path, taken)
        }
        await source.read(paths, limit, receive).catch(error => {
          // Refuse the rest of the batch: a second request would exceed the limit again.
          if (toAppError(error).code === 'too_large') refuseRest(batch, toAppError(error).message)
          throw error
        })
        refuseRest(batch, 'it could not be read in the workspace')
      }
    },
  }
}

export type FileReceiver = ReturnType<typeof createFileReceiver>

const readAll = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  for await (const chunk of source) parts.push(chunk)
  return Buffer.concat(parts)
}

export async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}
