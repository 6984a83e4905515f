import { createHash } from 'node:crypto'
import { readTarFiles, type SentFile } from '../../guest/tar-files.ts'
import type { BlobRef } from '../../jobs/job.ts'
import type { Blobs } from '../../ports.ts'

export interface FileReceiverOptions {
  readonly blobs: Blobs
  readonly jobId: string
  /** Memory for the contents needed for a patch; contents beyond it are only hashed. */
  readonly memoryBytes: number
  readonly storeBytes: number
  /** Called for each chunk, as a heartbeat: transfers may take long. */
  onBytes(): void
}

export interface Wanted {
  /** As reported by the machine. */
  readonly size: number
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

/**
 * Receives files from an untrusted machine: only requested ones, each once, only regular files, none larger than
 * announced. Names sent by a machine never become local paths.
 */
export const createFileReceiver = ({
  blobs,
  jobId,
  memoryBytes,
  storeBytes,
  onBytes,
}: FileReceiverOptions) => {
  const received = new Map<string, Received>()
  const refused = new Map<string, string>()
  let memory = memoryBytes
  let store = storeBytes

  const take = async (
    { type, size, sameAs }: SentFile,
    content: AsyncIterable<Uint8Array>,
    wanted: Wanted,
  ): Promise<Received | string> => {
    if (type === 'hard-link') return again(received.get(sameAs), wanted)
    if (type !== 'file') return 'it is no longer a regular file'
    if (!(size <= wanted.size)) return 'it grew while it was collected'
    if (wanted.into === 'memory') return hold(content, size, wanted.known)
    if (size > store) return 'it is larger than what is left for artifacts'
    store -= size
    const ref = await blobs.put(content, size, jobId)
    return { ...ref, content: () => readAll(blobs.read(ref.sha256)) }
  }

  /** Handles a hard link to a file that was already received. */
  const again = async (twin: Received | undefined, wanted: Wanted): Promise<Received | string> => {
    if (twin === undefined || twin.size > wanted.size)
      return 'it is a hard link to a file that was not received'
    if (wanted.into === 'store' && !(await blobs.hold(twin.sha256, jobId))) {
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

  return {
    received,
    /** Requested files that were not received, with the reason. */
    refused,
    isSettled: (path: string): boolean => received.has(path) || refused.has(path),
    /** Receives a tar of the requested files. After a complete tar, files that are not in it count as refused. */
    async receive(tar: AsyncIterable<Uint8Array>, asked: ReadonlyMap<string, Wanted>): Promise<void> {
      const limit = [...asked.values()].reduce((sum, { size }) => sum + size + TAR_FILE, TAR_END)
      await readTarFiles(watched(tar, onBytes), limit, async (file, content) => {
        const wanted = asked.get(file.path)
        if (wanted === undefined || received.has(file.path) || refused.has(file.path)) return
        const taken = await take(file, content, wanted)
        if (typeof taken === 'string') refused.set(file.path, taken)
        else received.set(file.path, taken)
      })
      for (const path of asked.keys())
        if (!received.has(path) && !refused.has(path))
          refused.set(path, 'it could not be read in the workspace')
    },
  }
}

export async function* watched(
  source: AsyncIterable<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    onBytes()
    yield chunk
  }
}

const readAll = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  for await (const chunk of source) parts.push(chunk)
  return Buffer.concat(parts)
}

export async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}
