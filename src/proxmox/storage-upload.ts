import { createHash } from 'node:crypto'
import { openRegularFile, streamRegularFile } from '../files/regular-file.ts'
import type { Request } from './api-request.ts'
import { path } from './encode.ts'
import { encodeMultipart } from './multipart.ts'

export interface Upload {
  readonly node: string
  readonly storage: string
  /** No version of Proxmox VE accepts uploads of snippets. */
  readonly content: 'iso' | 'vztmpl' | 'import'
  /** Overwrites an existing file of this name. */
  readonly filename: string
  readonly file: Uint8Array | { readonly path: string }
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

const UPLOAD_TIMEOUT_MS = 10 * 60_000

/** Uploads a file to a storage and returns the UPID of the task that stores it. */
export const upload = async (
  request: Request,
  { node, storage, content, filename, file, ...rest }: Upload,
): Promise<string> => {
  const { size, bytes, checksum } = await describe(file)
  const fields = { content, ...(checksum ? { 'checksum-algorithm': 'sha256', checksum } : {}) }
  const multipart = encodeMultipart(fields, { filename, size, content: bytes })
  return request<string>(
    'POST',
    path`/nodes/${node}/storage/${storage}/upload`,
    { ...fields, filename },
    {
      ...rest,
      raw: multipart,
      timeoutMs: rest.timeoutMs ?? UPLOAD_TIMEOUT_MS,
    },
  )
}

/** Content in memory gets a checksum. A file does not: it may have gigabytes and would be read twice. */
const describe = async (file: Upload['file']) => {
  if (file instanceof Uint8Array) {
    return {
      size: file.length,
      bytes: () => [file],
      checksum: createHash('sha256').update(file).digest('hex'),
    }
  }
  const handle = await openRegularFile(file.path)
  const { size } = await handle.stat().finally(() => handle.close())
  return { size, bytes: () => streamRegularFile(file.path), checksum: undefined }
}
